#include "hstu/prepare/verify.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/dataset/manifest.h"
#include "hstu/events/verify_dataset.h"
#include "hstu/mlcommons/verify_mlcommons.h"

namespace hstu {
namespace {

// The caches that `folder` contains, in the order of their names.
std::vector<Path> caches_in(const Path& folder) {
  std::vector<Path> caches;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().starts_with("hstu_cache_L"))
      caches.push_back(entry.path());
  }
  std::sort(caches.begin(), caches.end());
  return caches;
}

// A folder as MLCommons' preparation leaves it: tables, and a cache for each history length.
std::vector<FileVerdict> verify_prepared(const Path& folder, const std::vector<Path>& caches) {
  std::vector<FileVerdict> verdicts;
  for (const Path& cache : caches) {
    for (FileVerdict& verdict : verify_mlcommons(cache)) {
      if (caches.size() > 1) verdict.file = (cache.filename() / verdict.file).string();
      verdicts.push_back(std::move(verdict));
    }
  }
  for (FileVerdict& verdict : verify_mlcommons_tables(folder, caches.front()))
    verdicts.push_back(std::move(verdict));
  return verdicts;
}

}  // namespace

std::vector<FileVerdict> verify(const Path& folder) {
  if (std::filesystem::exists(folder / kManifestFile)) return verify_dataset(folder);
  if (std::filesystem::exists(folder / "store_meta.json")) return verify_mlcommons(folder);
  if (const std::vector<Path> caches = caches_in(folder); !caches.empty())
    return verify_prepared(folder, caches);
  fail_usage("{} is neither a dataset (it has no {}) nor a cache in MLCommons' layout (no store_meta.json)",
             folder.string(), kManifestFile);
}

}  // namespace hstu
