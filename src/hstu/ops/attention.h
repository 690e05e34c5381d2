// Jagged HSTU attention (attention/problem.h states the formula, attention/mask.h the mask).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "hstu/attention/problem.h"
#include "hstu/ops/columns.h"
#include "hstu/ops/dropout.h"
#include "hstu/ops/gather_keys.h"
#include "hstu/ops/swap_heads.h"

namespace hstu::ops {

// attention/problem.h: RelativeBias. Undefined tables: no such term.
struct AttentionBias {
  Variable position_table;  // (1 or H, 2 P - 1) f64 for f64, otherwise f32
  Variable time_table;      // (1 or H, thresholds + 1), the same type
  Tensor thresholds;        // (thresholds) i64 ascending
  Tensor query_time;        // (Tq) i64
  Tensor key_time;          // (T) i64

  bool any() const { return position_table.defined() || time_table.defined(); }
};

// attention/problem.h: CachedKeys, of N pages. Undefined: there is no past.
struct AttentionPast {
  Tensor k, v;  // (N * page_tokens, H * D) of the type of k and v
  std::int64_t page_tokens = 0;
  Tensor pages;         // i32
  Tensor page_offsets;  // (pasts + 1) i64
  Tensor lengths;       // (pasts) i64
  Tensor past_of;       // (B) i32
  Tensor time;          // (N * page_tokens) i64; undefined without a time table
};

// Where keys and values of some tokens are kept: those of row tokens[i] become row slots[i]. Undefined: none.
struct AttentionKept {
  Tensor k, v;       // (slots, H * D) of the type of k and v
  Tensor tokens;     // (n) i32
  Tensor slots;      // (n) i64
  Tensor time = {};  // (slots) i64, for those of AttentionBias::key_time; undefined: they are not kept
};

// This rank's queries of the samples that ranks share, in runs of neighbours: R samples, of the keys that a
// run sees alone. The lists are as in AttentionShape; this rank's rows of q are the runs, one after another.
struct QueryRuns {
  DividedKeys keys;
  Tensor offsets, query_offsets;  // (R + 1)
  Tensor query_first, contexts, targets, sample_scale;
  Tensor query_time, key_time;
};

// How the ranks of a group share the samples: q has this rank's rows of all queries, k and v those of all
// tokens. Everything else in the shape is of the samples as a whole, and the same on all ranks.
struct AttentionDivision {
  Group group;
  DividedRows queries = {}, tokens = {};  // where each rank computes some heads of all samples
  std::optional<QueryRuns> runs = {};     // where it computes all heads of its own queries
};

// The samples of a batch, and the mask between their tokens. Tensors are on the device of q and vk.
struct AttentionShape {
  std::int64_t heads = 0, head_dim = 0;  // H, D
  double alpha = 1;                      // factor of q . k
  double scale = 1;                      // factor of the function of the scores
  Tensor sample_scale;                   // (B) further factors: f64 for f64, otherwise f32; undefined: 1
  Tensor offsets;                        // (B + 1) i64 tokens, T in total
  Tensor query_offsets;                  // (B + 1) i64 queries, Tq in total: the last tokens of each sample;
                                         // undefined: every token is a query
  Tensor query_first;                    // (B) i32, with query_offsets: the token that is the first query
  AttentionMask mask;                    // causal
  Tensor contexts;                       // (B) i32 first tokens of each sample; undefined: none
  Tensor targets;                        // (B) i32 last tokens of each sample; undefined: none
  ScoreFunction score = ScoreFunction::silu;
  AttentionBias bias;
  AttentionPast past;
  AttentionKept kept;
  Dropout dropout;  // of the weights of pairs (attention/problem.h), with names of (Tq)
  // Null: this rank has all rows. Otherwise all ranks of the group call the operation together, without a
  // past, and so do the backward passes. On processors a row of the result has the bits that it has without a
  // division where ranks divide the heads, which are as many as ranks or more.
  std::shared_ptr<const AttentionDivision> division = {};
  // With a division: the backward pass exchanges what came from other ranks again instead of keeping it.
  bool exchanges_again = false;
};

// o (Tq, H * D) from q (Tq, H * D), k (T, H * D) and v (T, H * D). On a GPU, proper columns of a variable may
// be an operand once.
Variable attention(Tape& tape, const Columns& q, const Columns& k, const Columns& v,
                   const AttentionShape& shape);

}  // namespace hstu::ops
