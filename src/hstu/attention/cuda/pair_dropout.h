// Dropout of the weights of pairs (AttentionProblem::dropout), as arguments of the kernels for tensor cores.
#pragma once

#include <cstdint>

#include "hstu/attention/problem.h"
#include "hstu/kernels/dropout_rate.h"

namespace hstu::cuda {

// The names are those of kernels/dropout.h.
struct PairDropout {
  std::uint64_t key;              // of all heads
  const std::int64_t* row_names;  // or null: the number of the row
  std::uint32_t threshold;        // of 16 bits: smaller pieces drop
  float factor;                   // of the weights that are kept
};

inline PairDropout pair_dropout_of(const AttentionProblem& p) {
  const std::uint32_t threshold = kernels::dropout_threshold(p.dropout.rate);
  return {p.dropout.key, p.dropout.row_names, threshold, static_cast<float>(kernels::kept_factor(threshold))};
}

}  // namespace hstu::cuda
