// Jagged causal HSTU attention (kernels/attention.h states the formula).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// Where the samples of a batch begin and end, and how their attention is scaled.
struct AttentionShape {
  std::int64_t heads, head_dim;             // H, D
  double alpha;                             // factor of q . k
  std::vector<std::int64_t> offsets;        // (B + 1) tokens, T in all
  std::vector<std::int64_t> query_offsets;  // (B + 1) queries, Tq in all: the last tokens of each sample
  std::vector<double> scale;                // (B) factor of silu(alpha q . k)
};

// o (Tq, H * D) from q (Tq, H * D) and vk (T, 2 * H * D), the values and keys side by side.
Variable attention(Tape& tape, const Variable& q, const Variable& vk,
                   std::shared_ptr<const AttentionShape> shape);

}  // namespace hstu::ops
