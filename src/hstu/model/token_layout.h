// Where each token of a batch comes from: sample b is [contextual tokens, history, candidate].
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/model/config.h"
#include "hstu/ops/gather_sum.h"

namespace hstu {

// Alphabet: B samples, C contextual tokens a sample, T tokens in all.
struct TokenLayout {
  std::vector<std::int64_t> offsets;     // (B + 1)
  std::vector<std::int64_t> query_time;  // (B) seconds: the candidate token's time
  std::vector<std::uint8_t> actions;     // (n) distinct action masks of the histories, ascending
  Tensor context;                        // (T) row c * B + b of the contextual tokens, -1 elsewhere
  Tensor item;                           // (T) row of the distinct items, -1 for contextual tokens
  Tensor action;                         // (T) row of `actions`; n for candidates, -1 for contextual tokens
  Tensor position;                       // (T) row of the position table
  Tensor time_bucket;                    // (T) row of the time table
  Tensor candidate;                      // (B) the candidate's token
};

TokenLayout token_layout(const Batch& batch, const ModelConfig& config);

// Position of token n of a sample of `length` tokens, `context` of them contextual: contextual tokens 0 .. C
// - 1, the candidate C, then upwards into the past, the last row shared by everything older.
std::int32_t position_row(std::int64_t n, std::int64_t length, std::int64_t context, std::int64_t positions);

// trunc(sqrt(minutes)) between a token and the query, in [0, buckets]; the future counts as now.
std::int32_t time_bucket_row(std::int64_t query_time, std::int64_t time, std::int64_t buckets);

}  // namespace hstu
