// The schemas of Yambda, MovieLens and KuaiRand, expressed like those of a user's schema file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// Files of lines of ids, or MovieLens' ratings, in which every event is the action "event". `files` are
// names, not patterns.
Schema sequences_schema(const std::vector<Path>& files, const SequenceFormat& format, TimeUnit unit,
                        bool relative_time);
Schema movielens_sequences_schema(const std::vector<Path>& files);

// KuaiRand (kuairand.com): Pure, 1K or 27K, whichever is in `input` or in its folder data: the logs of the
// standard policy, without those of the random one. `label`: one of the seven actions, is_click to long_view,
// whose bits are those of NVIDIA's examples. UsageError if there are no logs, or those of several variants.
Schema kuairand_schema(const Path& input, const std::string& label);

// The actions' names, in the order of their bits.
std::vector<std::string> kuairand_actions();

}  // namespace hstu
