// The arguments and launches of the backward kernels for Hopper.
#pragma once

#include <cuda.h>

#include "hstu/attention/cuda/bias.h"
#include "hstu/attention/cuda/pair_dropout.h"
#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/cuda/schedule.h"
#include "hstu/attention/hidden_keys.h"

namespace hstu::cuda {

// All blocks that hold keys of a row of dQ add to its fp32 sum in memory; the last of them rounds it
// (query_sums.cuh). The sums of kBackwardTile rows of a head are contiguous, in the order of
// ScheduleItem::first, which is the order of their use. Inside, they have the order of a warpgroup's
// registers, so that additions go in pieces of 512 bytes: for each 64 rows, D / 64 parts of 64 columns, each
// [8][128 threads][4].
struct BackwardArguments {
  CUtensorMap q, k, v, d_o;
  CUtensorMap k_half, q_before_half;  // half of the columns (head size 256 only)
  CUtensorMap dq_map;                 // for stores at head size 256
  CUtensorMap dk_map, dv_map;         // for stores up to head size 128
  Samples samples;
  Schedule schedule;
  float* dq_sum;
  // For each 64 rows of dq_sum and block of a cluster: the tiles that have added. 0 at first.
  std::int32_t* turns_taken;
  void *dq, *dk, *dv;
  const void* q_before;            // or null; in rows as dq
  CUtensorMap k_before, v_before;  // if there is q_before
  std::int64_t dq_row_stride, dq_head_stride, dk_row_stride, dk_head_stride, dv_row_stride, dv_head_stride;
  float half_alpha;  // of a softmax alpha
  int head_dim;
  bool in_order;  // the terms of dQ are added in the same order every time
};

struct BiasedBackwardArguments : BackwardArguments {
  Bias bias;
};

struct SoftmaxBackwardArguments : BackwardArguments {
  float exponent;  // alpha log2(e)
  HiddenKeys hidden;
  const float* statistics;  // SoftmaxBlock of each 64 rows of a head, in the order of dq_sum
};

struct DroppingBackwardArguments : SoftmaxBackwardArguments {
  PairDropout dropout;
};

// The index in dq_sum of the first rows of the head whose first tile has the number `first`.
__host__ __device__ inline std::int64_t sums_of_head(std::int32_t first, int width) {
  return static_cast<std::int64_t>(first) * kBackwardTile * width;
}

// `Arguments`: any of those above.
template <typename T, int kD, typename Arguments>
void launch_backward_sm90(const Arguments& arguments, int multiprocessors, cudaStream_t stream);
template <typename T>
void launch_backward_sm90_256(const BackwardArguments& arguments, int multiprocessors, cudaStream_t stream);

}  // namespace hstu::cuda
