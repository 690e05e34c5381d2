// The schemas of Yambda and MovieLens, in the same words that a user's schema file has.
#pragma once

#include <cstdint>

#include "hstu/base/files.h"
#include "hstu/events/schema.h"

namespace hstu {

// Bits of Yambda's actions.
inline constexpr std::uint8_t kListenPlus = 1, kLike = 2, kSkip = 4;

// Yambda (huggingface.co/datasets/yandex/yambda, `flat` layout). `mappings` is the folder of the catalogue's
// artist_item_mapping.parquet and album_item_mapping.parquet.
Schema yambda_schema(const Path& mappings, const SplitRule& split);

// The folder of Yambda's mappings for events in `input`: the folder itself, or where the published layouts
// keep them, relative to raw/<size>/ or flat/<size>/. UsageError when it is in none of these places.
Path find_yambda_mappings(const Path& input);

// MovieLens, whichever of ml-100k, ml-1m, ml-20m, ml-25m or ml-32m lies in `input`. A rating of at least
// `positive_rating` is the positive action. UsageError when no ratings file is found.
Schema movielens_schema(const Path& input, double positive_rating);

}  // namespace hstu
