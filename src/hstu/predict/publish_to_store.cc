#include "hstu/predict/publish_to_store.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/checkpoint/manifest.h"
#include "hstu/objects/connections.h"
#include "hstu/objects/publication.h"
#include "hstu/objects/upload.h"
#include "hstu/score/model_folder.h"

namespace hstu {
namespace {

// The weights' own manifest has the checksums of their files, which are not read for that.
StoredExport describe(const Path& path, const std::string& base) {
  const ExportFolder folder{path};
  const CheckpointManifest weights = read_checkpoint_manifest(folder.weights());
  StoredExport stored{.folder = path.filename(), .base = base, .files = {}};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    const auto known = weights.files.find(entry.path().lexically_relative(folder.weights()).generic_string());
    stored.files[entry.path().lexically_relative(path).generic_string()] = {
        static_cast<std::int64_t>(entry.file_size()),
        known == weights.files.end() ? file_checksum(entry.path()) : known->second.checksum};
  }
  return stored;
}

class StorePublisher {
 public:
  StorePublisher(const ObjectStore& store, ObjectUrl url) : store_(store), url_(std::move(url)) {
    for (StoredObject& object : store_.list(url_)) sizes_[std::move(object.key)] = object.size;
  }

  std::string send(const Path& path, const std::string& base, std::int64_t part_bytes) {
    const StoredExport stored = describe(path, base);
    std::string name = stored.name();
    bases_[name] = base;
    if (sizes_.contains(manifest_key(url_, name))) return name;
    std::vector<FileUpload> missing;
    for (const auto& [file, is] : stored.files) {
      const std::string key = files_prefix(url_, name) + file;
      if (const auto there = sizes_.find(key); there == sizes_.end() || there->second != is.bytes)
        missing.push_back({key, path / file});
    }
    upload_files(store_, url_.bucket, missing, part_bytes);
    store_.write(url_.bucket, manifest_key(url_, name), stored.manifest());
    return name;
  }

  void set_current(const std::string& name) const {
    const std::string text = name + "\n";
    if (store_.read(url_.bucket, current_key(url_)) != text)
      store_.write(url_.bucket, current_key(url_), text);
  }

  // An export loses its manifest before its files, so that none is half of one.
  void remove_older(const std::string& current, std::int64_t keep) {
    const std::set<std::string> kept = kept_exports(current, keep);
    std::vector<std::string> manifests, files;
    for (const auto& [key, size] : sizes_) {
      const std::string path = key.substr(url_.prefix.size());
      const std::size_t slash = path.find('/');
      const std::string name = slash == path.npos ? name_of_manifest(path) : path.substr(0, slash);
      if (is_name(name) && !kept.contains(name)) (slash == path.npos ? manifests : files).push_back(key);
    }
    for (const auto& keys : {manifests, files})
      for_each_by_connections(keys.size(), [&](std::size_t n) { store_.remove(url_.bucket, keys[n]); });
    abort_uploads(store_, url_, [this](const std::string& key) {
      const std::string path = key.substr(url_.prefix.size());
      return is_name(path.substr(0, path.find('/')));
    });
  }

 private:
  // "step_", digits, "-", a checksum: what else is in the folder is not ours.
  static bool is_name(const std::string& name) {
    constexpr std::size_t kChecksum = 32;
    constexpr std::string_view kStep = "step_";
    if (!name.starts_with(kStep) || name.size() <= kStep.size() + kChecksum + 1) return false;
    const std::size_t dash = name.size() - kChecksum - 1;
    return name[dash] == '-' && name.find_first_not_of("0123456789", kStep.size()) == dash &&
           name.find_first_not_of("0123456789abcdef", dash + 1) == name.npos;
  }
  static std::string name_of_manifest(const std::string& path) {
    constexpr std::string_view kEnd = ".json";
    return path.ends_with(kEnd) ? path.substr(0, path.size() - kEnd.size()) : "";
  }
  static std::string folder_of(const std::string& name) { return name.substr(0, name.find('-')); }

  std::string base_of(const std::string& name) {
    if (const auto known = bases_.find(name); known != bases_.end()) return known->second;
    const auto text = store_.read(url_.bucket, manifest_key(url_, name));
    return bases_[name] = text ? parse_stored_export(name, *text).base : "";
  }

  // As in a folder: the current one, the latest ones, and what these have as their bases. Of a step that was
  // published again only the current export remains.
  std::set<std::string> kept_exports(const std::string& current, std::int64_t keep) {
    std::vector<std::string> names;
    for (const auto& [key, size] : sizes_) {
      const std::string name = name_of_manifest(key.substr(url_.prefix.size()));
      if (is_name(name) && folder_of(name) != folder_of(current)) names.push_back(name);
    }
    std::ranges::sort(names, [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() > b.size() : a > b;
    });
    std::set<std::string> kept{current};
    for (auto next = names.begin(); next != names.end() && std::ssize(kept) < keep; ++next)
      kept.insert(*next);
    for (const std::string& name : std::set<std::string>(kept))
      if (const std::string base = base_of(name); !base.empty()) kept.insert(base);
    return kept;
  }

  const ObjectStore& store_;
  ObjectUrl url_;
  std::map<std::string, std::int64_t> sizes_;  // of what was there at first, by key
  std::map<std::string, std::string> bases_;   // of exports, by name
};

}  // namespace

std::string publish_to_store(const ObjectStore& store, const ObjectUrl& url, const Path& path,
                             const std::optional<Path>& base, std::int64_t keep, std::int64_t part_bytes) {
  StorePublisher publisher(store, url);
  const std::string base_name = base ? publisher.send(*base, "", part_bytes) : "";
  std::string name = publisher.send(path, base_name, part_bytes);
  publisher.set_current(name);
  try {
    publisher.remove_older(name, keep);
  } catch (const Error& error) {
    print_note("warning: older exports remain: {}\n", error.what());
  }
  return name;
}

}  // namespace hstu
