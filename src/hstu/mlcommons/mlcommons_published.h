// Digests that MLCommons publishes for its prepared form of Yambda-5b.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/events/digest.h"

namespace hstu {

struct PublishedFile {
  const char* name;
  Digest digest;
  const char* value;
};

// Number of events of the cache with these digests; other data have other digests.
inline constexpr std::int64_t kPublishedEvents = 4'763'272'693;

std::span<const PublishedFile> published_cache_files();  // in hstu_cache_L4086
// split_meta.json and item_popularity.npy beside the cache, and the catalogue's two mappings.
std::span<const PublishedFile> published_metadata_files();

}  // namespace hstu
