// What the kernels for tensor cores since Ampere are given. Queries carry q and dO, keys carry k and v; a
// block has rows of its own on one side and walks those of the other, so that the same kernels serve both:
//
//   sum_mma       out_i = sum over j of silu(alpha own_i . other_j) other_value_j           O, dV
//   gradient_mma  out_i = sum over j of silu'(alpha own_i . other_j) (own_value_i . other_value_j) alpha
//   other_j
//                                                                                           dQ, dK
// both times the sample's scale. No two blocks write the same row: there is nothing to sum afterwards.
#pragma once

#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/cuda/schedule.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

struct MmaSide {
  AttentionRows own, own_value, other, other_value, out;
  bool of_keys;  // own rows are keys
};

struct MmaArguments {
  Samples samples;
  Schedule schedule;  // of tiles of the kernel's rows, last to first
  MmaSide sides[2];
  float half_alpha;
  int head_dim;
};

// Own rows of a tile, by the width the kernel computes with.
constexpr int sum_mma_rows(int) {
  return 128;
}
constexpr int gradient_mma_rows(int width) {
  return width == 256 ? 64 : 128;
}

// `items`: a bound of the schedule's items; `sides`: how many of the sides are computed.
template <typename T, int kD>
void launch_sum_mma(const MmaArguments& arguments, std::int64_t items, int sides, cudaStream_t stream);
template <typename T, int kD>
void launch_gradient_mma(const MmaArguments& arguments, std::int64_t items, int sides, cudaStream_t stream);

}  // namespace hstu::cuda
