// Jagged HSTU attention (attention/problem.h states the formula, attention/mask.h the mask).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hstu/attention/problem.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

// The samples of a batch, and how their tokens see each other.
struct AttentionShape {
  std::int64_t heads = 0, head_dim = 0;     // H, D
  double alpha = 1;                         // factor of q . k
  std::vector<std::int64_t> offsets;        // (B + 1) tokens, T in all
  std::vector<std::int64_t> query_offsets;  // (B + 1) queries, Tq in all: the last tokens of each sample
  std::vector<double> scale;                // (B) factor of silu(alpha q . k)
  AttentionMask mask;                       // causal
  std::vector<std::int32_t> contexts;       // (B) first tokens of each sample, or empty: none
  std::vector<std::int32_t> targets;        // (B) last tokens of each sample, or empty: none
};

// o (Tq, H * D) from q (Tq, H * D) and vk (T, 2 * H * D), the values and keys side by side.
Variable attention(Tape& tape, const Variable& q, const Variable& vk,
                   std::shared_ptr<const AttentionShape> shape);

}  // namespace hstu::ops
