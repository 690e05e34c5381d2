#include "hstu/mlcommons/verify_mlcommons.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/events/verify_dataset.h"
#include "hstu/mlcommons/mlcommons_cache.h"
#include "hstu/mlcommons/mlcommons_published.h"

namespace hstu {
namespace {

using Status = FileVerdict::Status;

FileVerdict verify_digest(const Path& path, const PublishedFile& published) {
  const char* const kind = published.digest == Digest::kSha256 ? "published SHA-256" : "published MD5";
  return verdict_of(published.name, kind, [&] {
    const std::string found = file_digest(path, published.digest);
    check(found == published.value, "expected the {} {}, found {}", kind, published.value, found);
  });
}

// The path in a download of a file that belongs to the cache; "" if it does not exist.
Path find_beside(const Path& cache, const std::string& name) {
  for (const char* place : {"..", "../shared_metadata", "../../shared_metadata", "."}) {
    if (std::filesystem::exists(cache / place / name)) return cache / place / name;
  }
  return {};
}

void verify_structure(const MlcommonsCache& cache, std::vector<FileVerdict>& verdicts) {
  for (const CacheColumn& column : cache.columns()) {
    if (!std::filesystem::exists(cache.file(column.name))) {
      verdicts.push_back(
          {.file = column.name, .status = Status::kMissing, .remark = "a cache has sixteen files"});
      continue;
    }
    verdicts.push_back(
        verdict_of(column.name, "type and length", [&] { check_cache_column(cache.folder(), column); }));
  }
  const bool whole = std::all_of(verdicts.begin(), verdicts.end(),
                                 [](const FileVerdict& v) { return v.status == Status::kOk; });
  if (!whole) return;
  verdicts.push_back(verdict_of("users", "users are consecutive; as many anchors as times",
                                [&] { MlcommonsCache(cache.folder()).user_offsets(); }));
}

void verify_popularity(const Path& path, std::vector<FileVerdict>& verdicts) {
  verdicts.push_back(verdict_of(path.filename().string(), "type", [&] { NpyColumn<std::int64_t>{path}; }));
}

}  // namespace

std::vector<FileVerdict> verify_mlcommons(const Path& folder) {
  std::vector<FileVerdict> verdicts;
  if (!std::filesystem::exists(folder / "_READY")) {
    return {{.file = "_READY",
             .status = Status::kMissing,
             .remark = "it is written last: the cache is incomplete"}};
  }
  std::int64_t events = 0;
  verdicts.push_back(verdict_of("store_meta.json", "users and events", [&] {
    const MlcommonsCache cache(folder, MlcommonsCache::Unchecked{});
    events = cache.events();
    const std::string exact =
        fmt::format("{{\"num_users\": {}, \"total_events\": {}}}", cache.users(), cache.events());
    check(read_file(cache.file("store_meta.json")) == exact, "expected exactly {}", exact);
  }));
  if (verdicts.back().status != Status::kOk) return verdicts;
  const MlcommonsCache cache(folder, MlcommonsCache::Unchecked{});
  verify_structure(cache, verdicts);
  const Path popularity = find_beside(folder, "item_popularity.npy");
  if (events != kPublishedEvents) {
    if (!popularity.empty()) verify_popularity(popularity, verdicts);
    return verdicts;
  }
  for (const PublishedFile& file : published_cache_files()) {
    if (std::filesystem::exists(folder / file.name)) {
      verdicts.push_back(verify_digest(folder / file.name, file));
    } else {
      verdicts.push_back(
          {.file = file.name, .status = Status::kMissing, .remark = "its digest is published"});
    }
  }
  for (const PublishedFile& file : published_metadata_files()) {
    if (const Path path = find_beside(folder, file.name); !path.empty())
      verdicts.push_back(verify_digest(path, file));
  }
  return verdicts;
}

}  // namespace hstu
