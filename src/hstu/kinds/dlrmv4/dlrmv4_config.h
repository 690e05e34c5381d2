// Sizes and switches of the DLRMv4 ranker.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/base/choice.h"
#include "hstu/model/recompute.h"

namespace hstu {

// The divisor of the attention: a constant, so that a sample's result does not depend on its batch, or the
// length of the longest sequence of the batch (the DLRMv4 reference).
enum class AttentionScale { max_sequence, longest_in_batch };
inline constexpr Choice<AttentionScale> kAttentionScales[] = {
    {"max_sequence", AttentionScale::max_sequence},
    {"longest_in_batch", AttentionScale::longest_in_batch},
};

// The time of the candidate token: the candidate's own, or that of the newest history event (the DLRMv4
// reference), which hides the time since that event.
enum class QueryTime { candidate, last_event };
inline constexpr Choice<QueryTime> kQueryTimes[] = {
    {"candidate", QueryTime::candidate},
    {"last_event", QueryTime::last_event},
};

struct Dlrmv4Config {
  std::int64_t embedding_dim = 64;  // E: width of the embedding tables
  std::int64_t dim = 64;            // D: width of the sequence model
  std::int64_t layers = 2;
  std::int64_t heads = 2;                  // H
  std::int64_t head_dim = 32;              // width of a head's queries, keys and values
  std::int64_t preprocessor_hidden = 256;  // of the content, attribute and action MLPs
  std::int64_t head_hidden = 512;          // of the item MLP and the head
  std::int64_t action_dim = 8;             // per action bit
  std::int64_t positions = 8192;           // rows of the position table
  std::int64_t time_buckets = 2048;        // the time table has one more row
  std::int64_t max_sequence = 4096;        // N: longest sequence, including context and candidate
  double input_dropout = 0.2;
  double layer_dropout = 0.1;
  Recompute recompute = {};  // of the layers
  double loss_weight = 1.0;  // factor of the mean loss (0.2 in DLRMv4)

  AttentionScale attention_scale = AttentionScale::max_sequence;
  QueryTime query_time = QueryTime::candidate;
  // The circle constant of the hour and weekday features; the DLRMv4 reference uses 3.14.
  double circle_constant = 3.14159265358979323846;

  // Filled from the dataset's schema and the feature configuration.
  std::vector<std::uint8_t> action_bits;  // input bits of the action encoder
  std::int64_t attributes = 0;            // item attributes with an embedding
  std::int64_t context = 0;               // C: contextual tokens
};

}  // namespace hstu
