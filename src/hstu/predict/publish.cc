#include "hstu/predict/publish.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/file_lock.h"
#include "hstu/base/folders.h"
#include "hstu/base/json_text.h"
#include "hstu/base/terminal.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/checkpoint/checkpoint_folder.h"
#include "hstu/dataset/manifest.h"
#include "hstu/objects/object_url.h"
#include "hstu/predict/export.h"
#include "hstu/predict/publish_to_store.h"
#include "hstu/run/folder.h"
#include "hstu/run/pruned.h"
#include "hstu/run/state.h"
#include "hstu/score/model_folder.h"

namespace hstu {
namespace {

constexpr const char* kPrefix = "step_";
constexpr const char* kBeside = "published";  // of a run: what a store gets

// What an export is made of: a checkpoint of a run, and the run's dataset, to which days are appended.
struct Source {
  std::int64_t step = -1;
  std::string identity, dataset;
  bool operator==(const Source&) const = default;
  bool is_checkpoint(const Source& o) const { return step == o.step && identity == o.identity; }
};

// The id of the dataset that an export would describe; "": there is none.
std::string dataset_of(const PublishOptions& options, const CheckpointManifest& checkpoint) {
  const Path path =
      options.data.empty() ? read_run_options(open_run_folder(options.run)).data.path : options.data;
  if (!std::filesystem::exists(path / kManifestFile)) return "";
  const Manifest manifest = read_manifest(path);
  return manifest.extends_or_is(checkpoint.state.value("dataset", "")) ? manifest.id : "";
}

Source source_of(const PublishOptions& options) {
  return read_checkpoint(open_run_folder(options.run).checkpoints(), options.checkpoint,
                         [&](const Path& path) {
                           const CheckpointManifest manifest = read_checkpoint_manifest(path);
                           return Source{manifest.step, manifest.identity(), dataset_of(options, manifest)};
                         });
}

// Of an export that publish() made.
Source source_of_export(const Path& path) {
  const Json manifest = parse_json(read_file(ExportFolder{path}.manifest()), ExportFolder{path}.manifest());
  return {manifest.value("step", std::int64_t{-1}), manifest.value("source", ""),
          manifest.value("dataset", Json::object()).value("id", "")};
}

std::optional<CheckpointLink> link_of(const Path& path) {
  return read_checkpoint_manifest(ExportFolder{path}.weights()).base;
}

// The export beside `path` that it has only the changes since.
std::optional<Path> base_of(const Path& path) {
  const std::optional<CheckpointLink> link = link_of(path);
  if (!link) return std::nullopt;
  return path.parent_path() / link->folder.parent_path().filename();  // "../../step_00000004/weights"
}

std::string name_of(std::int64_t step) {
  return fmt::format("{}{:08}", kPrefix, step);
}

// What has the name of an export, ascending: names of more digits are later.
std::vector<Path> named_exports_in(const Path& folder) {
  std::vector<Path> exports;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(kPrefix)) exports.push_back(entry.path());
  std::sort(exports.begin(), exports.end(), [](const Path& a, const Path& b) {
    const std::string x = a.filename(), y = b.filename();
    return x.size() != y.size() ? x.size() < y.size() : x < y;
  });
  return exports;
}

std::vector<Path> exports_in(const Path& folder) {
  std::vector<Path> exports = named_exports_in(folder);
  std::erase_if(exports, [](const Path& path) { return !is_export(path); });
  return exports;
}

void remove_older(const Path& folder, const Path& current, std::int64_t keep) {
  std::vector<Path> exports = exports_in(folder);
  std::set<Path> kept{current};
  for (auto newest = exports.rbegin(); newest != exports.rend() && std::ssize(kept) < keep; ++newest)
    kept.insert(*newest);
  for (const Path& path : std::set<Path>(kept))
    if (const auto base = base_of(path)) kept.insert(*base);
  for (const Path& path : exports)
    if (!kept.contains(path)) remove_export(path);
}

// The base of the next export, if it is not to be whole.
void choose_base(const Path& folder, const PublishOptions& options, ExportOptions& next) {
  const std::vector<Path> exports = exports_in(folder);
  if (exports.empty()) return;
  const std::optional<CheckpointLink> link = link_of(exports.back());
  const std::int64_t increments = link ? link->increments + 1 : 1;
  if (increments >= options.full_every) return;
  next.increments = increments;
  next.base = link ? *base_of(exports.back()) : exports.back();
}

// What was published of a run that went back, or of another run.
void remove_other(const Path& folder, const Path& path, const Source& source) {
  if (!is_export(path)) return;
  const Source found = source_of_export(path);
  if (found.identity.empty() || found.is_checkpoint(source)) return;  // earlier versions did not name it
  print_note("{}: was of another checkpoint of this step: it is replaced\n", path.string());
  for (const Path& other : exports_in(folder))
    if (base_of(other) == path) remove_export(other);
  remove_export(path);
}

// Removes exports that cannot be opened (torn, altered, without their base): nothing is published on top of
// them.
void remove_unusable(const Path& folder) {
  for (const Path& path : named_exports_in(folder)) {  // bases first
    try {
      if (!is_export(path)) continue;
      open_model_folder(path);
      read_manifest(ExportFolder{path}.dataset());
    } catch (const Error& error) {  // want of memory or of files proves nothing
      print_note("WARNING: {}: it is removed, and exported again where it is needed: {}\n", path.string(),
                 error.what());
      remove_export(path);
    }
  }
}

// The folder, for this process alone.
class PublicationLock {
 public:
  PublicationLock(const Path& folder, const char* key, std::chrono::seconds patience)
      : lock_(made(folder, key) / ".lock") {
    if (!lock_.wait_for(patience))
      fail_usage("{}: another process publishes there: wait for its end, or name another folder by {}",
                 folder.string(), key);
  }

 private:
  static const Path& made(const Path& folder, const char* key) {
    check_publication(folder, key, {});
    create_and_sync(folder);
    return folder;
  }
  FileLock lock_;
};

// Of an export whose run has other data now. Its weights have the same bytes again: those that have it as
// their base keep it.
void export_again(const Path& path, ExportOptions next) {
  next.output = fresh_export(path);
  if (const std::optional<CheckpointLink> link = link_of(path)) {
    next.base = *base_of(path);
    next.increments = link->increments;
  }
  export_model(next);
  replace_folder(next.output, path);
}

Path publish_in(const Path& folder, const PublishOptions& options) {
  remove_unfinished(folder);
  remove_unusable(folder);
  const Source source = source_of(options);
  Path path = folder / name_of(source.step);
  remove_other(folder, path, source);
  ExportOptions next{.run = options.run,
                     .output = path,
                     .checkpoint = options.checkpoint == "best" ? "best" : std::to_string(source.step),
                     .data = options.data};
  if (!is_export(path)) {
    choose_base(folder, options, next);
    export_model(next);
  } else if (!source.dataset.empty() && source_of_export(path).dataset != source.dataset) {
    export_again(path, std::move(next));
  }
  set_link(folder, kCurrentLink, path);
  remove_older(folder, path, options.keep);
  return path;
}

}  // namespace

void check_publication(const Path& folder, const char* key, const StoreOptions& store) {
  namespace fs = std::filesystem;
  if (is_object_url(folder.string())) {
    parse_object_url(folder.string());
    const ObjectStore checked(store);
    return;
  }
  if (fs::exists(folder) && !fs::is_directory(folder))
    fail_usage("{} {}: expected a folder, or a name for a new one, found a file", key, folder.string());
  const fs::file_status current = fs::symlink_status(folder / kCurrentLink);
  if (fs::exists(current) && !fs::is_symlink(current))
    fail_usage("{}: expected a link or nothing: name a folder by {} that hstu publish made",
               (folder / kCurrentLink).string(), key);
}

Path publish(const PublishOptions& options) {
  open_run_folder(options.run);  // before anything is made
  const std::string url = options.to;
  if (!is_object_url(url)) {
    const PublicationLock lock(options.to, "--to", options.patience);
    return publish_in(options.to, options);
  }
  const ObjectUrl place = parse_object_url(url);
  const ObjectStore store(options.store);
  const Path folder = options.beside.empty() ? options.run / kBeside : options.beside;
  const PublicationLock lock(folder, "--beside", options.patience);
  const Path path = publish_in(folder, options);
  const std::string name =
      publish_to_store(store, place, path, base_of(path), options.keep, options.store.part_bytes);
  return Path(object_name(place.bucket, place.prefix + name));
}

void follow_run(const PublishOptions& options, double seconds, const std::atomic<bool>& stop,
                const std::function<void(const Path&)>& published) {
  Source last;
  while (!stop) {
    const Clock::time_point looked = Clock::now();
    if (Source newest = source_of(options); newest != last) {
      published(publish(options));
      last = std::move(newest);
    }
    while (!stop && seconds_since(looked) < seconds)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace hstu
