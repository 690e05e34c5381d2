// What the kernels for beams (attention/beams.h) read and write.
#pragma once

#include "hstu/attention/beams.h"
#include "hstu/attention/cuda/jagged_rows.cuh"

namespace hstu::cuda {

template <typename T>
struct BeamArguments {
  std::int64_t beams;
  int heads, head_dim, codes, splits, tiles;
  float scale;  // of scores in powers of 2
  const std::int64_t* offsets;
  const std::int32_t* ancestors;
  AttentionInput q_rows, k_rows, v_rows;  // for copies of 16 bytes
  Rows<const T> q, k, v;
  Rows<const T> code_k[BeamAttention::kMostCodes], code_v[BeamAttention::kMostCodes];
  Rows<T> o;

  // The row of the keys of code c of a beam.
  __device__ std::int64_t row_of(std::int64_t beam, int c) const {
    return c + 1 == codes ? beam : ancestors[beam * (codes - 1) + c];
  }
};

template <typename T>
BeamArguments<T> beam_arguments(const BeamAttention& p, const AttentionRows& o) {
  BeamArguments<T> a{.beams = p.beams,
                     .heads = static_cast<int>(p.heads),
                     .head_dim = static_cast<int>(p.head_dim),
                     .codes = static_cast<int>(p.codes),
                     .splits = 1,
                     .tiles = 1,
                     .scale = static_cast<float>(p.alpha * 1.4426950408889634),
                     .offsets = p.offsets,
                     .ancestors = p.ancestors,
                     .q_rows = p.q,
                     .k_rows = p.k,
                     .v_rows = p.v,
                     .q = rows_of<T>(p.q),
                     .k = rows_of<T>(p.k),
                     .v = rows_of<T>(p.v),
                     .code_k = {},
                     .code_v = {},
                     .o = output_of<T>(o, false).rows};
  for (std::size_t c = 0; c < static_cast<std::size_t>(p.codes); ++c)
    a.code_k[c] = rows_of<T>(p.code[c].k), a.code_v[c] = rows_of<T>(p.code[c].v);
  return a;
}

inline constexpr const char* kBeamsWhat = "attention of beams";

// In bf16 on Hopper, for heads of 64 and 128 and rows that are aligned to 16 bytes.
void beam_attention_sm90(const BeamAttention& p, const AttentionRows& o, cudaStream_t stream);

}  // namespace hstu::cuda
