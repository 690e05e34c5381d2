// Columns of batches for models that predict a user's next event, in addition to those of every batch and of
// the features. Alphabet: B samples, T tokens in total, R positions whose next event is asked for.
//
// The tokens of a sample are the events of a user's history, oldest first. A sample of training has a user's
// last L + 1 events: its anchor is the last of them, which is no token, and the next event of every token is
// asked for, so R = T. A sample of an evaluation or of a request asks for the event after its last token
// alone: R = B, or fewer where a user has no history.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hstu/batching/batch.h"
#include "hstu/dataset/manifest.h"

namespace hstu::retrieval {

// The item's index, index_column("item"), is (T): the row of the distinct items for each token. Their ids are
// in ids_column("item"), ascending; targets, and negatives if there are any, are among them.
inline constexpr std::string_view kOffsets = kTokenOffsetsColumn;   // (B + 1) i64
inline constexpr std::string_view kTokenName = "token.name";        // (T) i64, token_name()
inline constexpr std::string_view kPosition = "token.position";     // (T) i32, 0 for a sample's oldest token
inline constexpr std::string_view kKeyTime = "token.time";          // (T) i64 seconds
inline constexpr std::string_view kQueryTime = "token.query_time";  // (T) i64 seconds, of the next event
// (T) i32, the bits of the event's actions; only where a model reads them.
inline constexpr std::string_view kAction = "token.action";
inline constexpr std::int64_t kActionRows = kRankableBit;  // which is above all bits of actions
// (T) i32 of a contextual feature: the row of its sample's id, for each token.
inline std::string token_context_column(std::string_view feature) {
  return "token.context." + std::string(feature);
}
// The tokens that the last layer computes. None of these columns in training: all tokens.
inline constexpr std::string_view kQuery = "query.token";           // (R) i32, the last of each sample
inline constexpr std::string_view kQueryName = "query.name";        // (R) i64, their token_name()
inline constexpr std::string_view kQueryOffsets = "query.offsets";  // (B + 1) i64
inline constexpr std::string_view kLastQueryTime = "query.time";    // (R) i64, their kQueryTime
// What is asked for.
inline constexpr std::string_view kTarget = "target.id";            // (R) i64 original ids of items
inline constexpr std::string_view kTargetRow = "target.row";        // (R) i32 rows of the distinct items
inline constexpr std::string_view kTargetSample = "target.sample";  // (R) i32 its sample of the batch
// (R) f32, factor of its loss; only of samples with weights.
inline constexpr std::string_view kTargetWeight = "target.weight";

// Of training alone, with a loss that draws: the columns of batching/catalogue_negatives.h, and V.
inline constexpr std::string_view kCatalogueSize = "catalogue.size";  // (1) i64

}  // namespace hstu::retrieval
