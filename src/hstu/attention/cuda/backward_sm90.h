// What the backward kernels of Hopper are given.
#pragma once

#include <cuda.h>

#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/cuda/schedule.h"

namespace hstu::cuda {

// dQ is summed in fp32 by all the blocks that hold keys of its rows, and rounded once by another kernel. The
// sum lies in the order of a warpgroup's registers, so that it is added in pieces of 512 bytes: per 64
// queries and head, D / 64 parts of 64 columns, each [8][128 threads][4].
struct BackwardArguments {
  CUtensorMap q, k, v, d_o;
  CUtensorMap k_half;  // half of the columns (head size 256 only)
  Samples samples;
  Schedule schedule;
  float* dq_sum;
  void *dq, *dk, *dv;
  std::int64_t dq_row_stride, dq_head_stride, dk_row_stride, dk_head_stride, dv_row_stride, dv_head_stride;
  float half_alpha;
  std::int64_t sum_blocks;  // of one head in dq_sum: T / 64 + B
  int head_dim;
};

// The place of query block `block` of a sample in dq_sum, in blocks of 64 rows and one head. Heads lie one
// after the other; samples begin at their first row / 64 + their number, which leaves each of them room for a
// last block that is not whole.
__host__ __device__ inline std::int64_t sum_block(std::int64_t blocks, int head, std::int64_t begin,
                                                  std::int64_t sample, std::int64_t block) {
  return head * blocks + begin / 64 + sample + block;
}

template <typename T, int kD>
void launch_backward_sm90(const BackwardArguments& arguments, int multiprocessors, cudaStream_t stream);
template <typename T>
void launch_backward_sm90_256(const BackwardArguments& arguments, int multiprocessors, cudaStream_t stream);
// dq = half_alpha * scale * dq_sum, in T.
template <typename T, int kD>
void launch_round_dq(const BackwardArguments& arguments, int multiprocessors, cudaStream_t stream);

}  // namespace hstu::cuda
