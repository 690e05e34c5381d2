// What the backward kernels of Hopper are given.
#pragma once

#include <cuda.h>

#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/cuda/schedule.h"

namespace hstu::cuda {

// dQ is summed in fp32 by all the blocks that hold keys of its rows, and rounded once by another kernel. The
// sums of kBackwardTile rows of a head lie together, in the order of ScheduleItem::first, which is that of
// their use, so that the cache holds some of them from one kernel to the next. Within, they lie in the order
// of a warpgroup's registers, so that they are added to in pieces of 512 bytes: per 64 rows D / 64 parts of
// 64 columns, each [8][128 threads][4].
struct BackwardArguments {
  CUtensorMap q, k, v, d_o;
  CUtensorMap k_half;  // half of the columns (head size 256 only)
  Samples samples;
  Schedule schedule;
  float* dq_sum;
  void *dq, *dk, *dv;
  std::int64_t dq_row_stride, dq_head_stride, dk_row_stride, dk_head_stride, dv_row_stride, dv_head_stride;
  float half_alpha;
  int head_dim;
  int workers;       // warps that see to dq_sum while tiles are computed, two a block
  int zeros_before;  // dq_sum is zeros at first up to the tile of this number (ScheduleItem::first)
};

// The place in dq_sum of the first rows of the head whose first tile has this number, in floats.
__host__ __device__ inline std::int64_t sums_of_head(std::int32_t first, int width) {
  return static_cast<std::int64_t>(first) * kBackwardTile * width;
}

template <typename T, int kD>
void launch_backward_sm90(const BackwardArguments& arguments, int multiprocessors, cudaStream_t stream);
template <typename T>
void launch_backward_sm90_256(const BackwardArguments& arguments, int multiprocessors, cudaStream_t stream);
// dq = half_alpha * scale * dq_sum, in T.
template <typename T, int kD>
void launch_round_dq(const BackwardArguments& arguments, int multiprocessors, cudaStream_t stream);

}  // namespace hstu::cuda
