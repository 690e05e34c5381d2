#include "hstu/prepare/verify.h"

#include "hstu/base/error.h"
#include "hstu/dataset/manifest.h"
#include "hstu/events/verify_dataset.h"
#include "hstu/mlcommons/verify_mlcommons.h"

namespace hstu {
namespace {

// The cache that `folder` is or contains; "" if there is none.
Path find_cache(const Path& folder) {
  if (std::filesystem::exists(folder / "store_meta.json")) return folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().starts_with("hstu_cache_L"))
      return entry.path();
  }
  return {};
}

}  // namespace

std::vector<FileVerdict> verify(const Path& folder) {
  if (std::filesystem::exists(folder / kManifestFile)) return verify_dataset(folder);
  if (const Path cache = find_cache(folder); !cache.empty()) return verify_mlcommons(cache);
  fail_usage("{} is neither a dataset (it has no {}) nor a cache in MLCommons' layout (no store_meta.json)",
             folder.string(), kManifestFile);
}

}  // namespace hstu
