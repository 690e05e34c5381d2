#include "hstu/serve/store_reader.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/folders.h"
#include "hstu/base/process.h"
#include "hstu/base/terminal.h"
#include "hstu/checkpoint/checkpoint_folder.h"
#include "hstu/objects/connections.h"
#include "hstu/score/model_folder.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

Path made(const Path& folder) {
  create_and_sync(folder);
  return folder;
}

}  // namespace

StoreReader::StoreReader(const std::string& url, const StoreOptions& options, Path folder)
    : url_(parse_object_url(url)),
      options_(options),
      store_(options),
      folder_(std::move(folder)),
      staging_(made(folder_ / ".store")),
      lock_(folder_ / ".lock") {
  if (!lock_.held())
    fail_usage("{}: another process publishes or downloads there: name another folder by --beside",
               folder_.string());
}

bool StoreReader::update() {
  store_ = ObjectStore(options_);  // with the keys that the file has now: those of a session end
  const auto text = store_.read(url_.bucket, current_key(url_));
  check(text.has_value(), "{}: nothing is published there: hstu publish makes it",
        object_name(url_.bucket, current_key(url_)));
  const std::string name = parse_current(*text, url_);
  if (name == current_) return false;
  std::vector<std::pair<std::string, StoredExport>> exports{{name, described(name)}};
  const std::string base = exports.front().second.base;
  if (!base.empty()) exports.insert(exports.begin(), {base, described(base)});
  std::set<std::string> needed;
  for (const auto& [each, stored] : exports) {
    needed.insert(stored.folder);
    if (!is_here(each, stored)) download(each, stored);
  }
  for (const auto& [each, stored] : exports)
    if (!is_here(each, stored)) install(each, stored);
  set_link(folder_, kCurrentLink, folder_ / exports.back().second.folder);
  current_ = name;
  remove_others(needed);
  return true;
}

StoredExport StoreReader::described(const std::string& name) const {
  const std::string key = manifest_key(url_, name);
  const auto manifest = store_.read(url_.bucket, key);
  check(manifest.has_value(), "{}: is not there: it was removed meanwhile, or never published whole",
        object_name(url_.bucket, key));
  return parse_stored_export(name, *manifest);
}

// .store/step_STEP says which export the folder of that name is. A file that was lost or cut is downloaded
// again.
bool StoreReader::is_here(const std::string& name, const StoredExport& stored) const {
  const Path label = staging_ / stored.folder;
  if (!fs::exists(label) || read_file(label) != name) return false;
  return std::ranges::all_of(stored.files, [&](const auto& file) {
    std::error_code error;
    const auto bytes = fs::file_size(folder_ / stored.folder / file.first, error);
    return !error && static_cast<std::int64_t>(bytes) == file.second.bytes;
  });
}

void StoreReader::download(const std::string& name, const StoredExport& stored) const {
  const std::vector<std::pair<std::string, StoredFile>> files(stored.files.begin(), stored.files.end());
  for (const auto& [path, is] : files) fs::create_directories((staging_ / name / path).parent_path());
  for_each_by_connections(files.size(), [&](std::size_t n) {
    const auto& [path, is] = files[n];
    const Path file = staging_ / name / path;
    const std::string key = files_prefix(url_, name) + path;
    store_.download(url_.bucket, {key, "", is.bytes}, file, &stop_);
    if (file_checksum(file) == is.checksum) return;
    fs::remove(file);
    fail(
        "{}: the object is not the file that was published: it arrives damaged, or was altered; another try "
        "downloads it again",
        object_name(url_.bucket, key));
  });
}

void StoreReader::install(const std::string& name, const StoredExport& stored) const {
  const Path path = folder_ / stored.folder, label = staging_ / stored.folder;
  const bool replaces = fs::exists(path);  // another one of this step
  if (replaces) {
    fs::remove(label);
    replace_folder(staging_ / name, path);
  }
  write_file(label, name);
  if (!replaces) rename_and_sync(staging_ / name, path);
}

// A server may be opening what was current until now.
void StoreReader::remove_others(const std::set<std::string>& needed) {
  remove_unfinished(folder_);
  std::vector<Path> others;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("step_") && !needed.contains(name) && !needed_.contains(name))
      others.push_back(entry.path());
  }
  for (const Path& path : others) remove_export(path);
  others.clear();
  for (const auto& entry : fs::directory_iterator(staging_))
    if (!fs::exists(folder_ / entry.path().filename())) others.push_back(entry.path());
  for (const Path& path : others) fs::remove_all(path);
  needed_ = needed;
}

StoreFollower::StoreFollower(StoreReader& reader, double seconds)
    : reader_(reader), thread_([this, seconds] {
        Clock::time_point looked = Clock::now();
        std::string said;
        while (!ends_) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          if (seconds_since(looked) < seconds) continue;
          try {
            reader_.update();
            said.clear();
          } catch (const std::exception& error) {
            const std::string words = words_of(error);
            if (!ends_ && said != words) print_note("warning: {}; the model stays as it is\n", words);
            said = words;
          }
          looked = Clock::now();
        }
      }) {}

StoreFollower::~StoreFollower() {
  ends_ = true;
  reader_.stop();
  thread_.join();
}

}  // namespace hstu
