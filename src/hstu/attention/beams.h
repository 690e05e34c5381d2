// Softmax attention of the beams of a search: every beam is one query, which sees the keys of its user's
// history and those of the codes that the beam has. The beams of a user share the history's keys and values;
// those of earlier codes are found by index.
//
//   o_b = sum over its keys j of softmax(alpha q_b . k_j) v_j      by head
#pragma once

#include <array>
#include <cstdint>

#include "hstu/attention/problem.h"

struct CUstream_st;

namespace hstu {

struct BeamAttention {
  static constexpr std::int64_t kMostCodes = 16;  // of a beam, as ItemCodes has them at most

  AttentionType type = AttentionType::bf16;  // of q, k, v and o
  std::int64_t users = 0, beams = 0;         // R; W of each user
  std::int64_t heads = 0, head_dim = 0;      // H, D
  double alpha = 1;
  AttentionInput q;                       // (R * W, H, D)
  AttentionInput k, v;                    // (T, H, D) of the histories
  std::int64_t tokens = 0;                // T
  const std::int64_t* offsets = nullptr;  // (R + 1) those of user u are rows [offsets[u], offsets[u + 1])
  // Of each beam, whose query is the token of the last. 0: the query is a token of the history, of which it
  // sees all, and every history has one.
  std::int64_t codes = 0;
  const std::int32_t* ancestors = nullptr;  // (R * W, codes - 1) rows of the codes before
  struct Code {
    AttentionInput k, v;  // (R * W, H, D)
  };
  // Of code 0, 1, ..; a beam's last has the beam's row.
  std::array<Code, kMostCodes> code;
  bool row_stable = false;  // as AttentionProblem::row_stable: on CUDA cores
};

// o: rows as q. The host computes in fp32 and fp64.
void beam_attention(const BeamAttention& p, const AttentionRows& o);

namespace cuda {
// In fp32 and bf16: with tensor cores in bf16 for heads of 64 and 128. Throws Error in a build without CUDA.
void beam_attention(const BeamAttention& p, const AttentionRows& o, CUstream_st* stream);
}  // namespace cuda

}  // namespace hstu
