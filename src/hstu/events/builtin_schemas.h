// The schemas of Yambda and MovieLens, expressed like those of a user's schema file.
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

// The folder of Yambda's mappings for events in `input`: the folder itself, or one of the places of the
// published layouts, relative to raw/<size>/ or flat/<size>/. UsageError if they are in none of these.
Path find_yambda_mappings(const Path& input);

// MovieLens: ml-100k, ml-1m, ml-20m, ml-25m or ml-32m, whichever is in `input`. A rating of at least
// `positive_rating` is the positive action. UsageError if there is no ratings file.
Schema movielens_schema(const Path& input, double positive_rating);

}  // namespace hstu
