// Jagged HSTU attention (attention/problem.h states the formula, attention/mask.h the mask).
#pragma once

#include <cstdint>

#include "hstu/attention/problem.h"
#include "hstu/ops/columns.h"

namespace hstu::ops {

// The samples of a batch, and the mask between their tokens. Tensors are on the device of q and vk.
struct AttentionShape {
  std::int64_t heads = 0, head_dim = 0;  // H, D
  double alpha = 1;                      // factor of q . k
  double scale = 1;                      // factor of silu(alpha q . k)
  Tensor sample_scale;                   // (B) further factors: f64 for f64, otherwise f32; undefined: 1
  Tensor offsets;                        // (B + 1) i64 tokens, T in total
  Tensor query_offsets;                  // (B + 1) i64 queries, Tq in total: the last tokens of each sample;
                                         // undefined: every token is a query
  AttentionMask mask;                    // causal
  Tensor contexts;                       // (B) i32 first tokens of each sample; undefined: none
  Tensor targets;                        // (B) i32 last tokens of each sample; undefined: none
};

// o (Tq, H * D) from q (Tq, H * D), k (T, H * D) and v (T, H * D). On a GPU, proper columns of a variable may
// be an operand once.
Variable attention(Tape& tape, const Columns& q, const Columns& k, const Columns& v,
                   const AttentionShape& shape);

}  // namespace hstu::ops
