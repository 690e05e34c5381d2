// The arguments and launches of the kernels for tensor cores since Ampere. Queries carry q and dO, keys carry
// k and v. A block has rows of its own on one side and walks those of the other, so that the same kernels
// serve both sides. For row i, summed over the rows j of the other side and multiplied by the sample's scale:
//
//   sum            silu(alpha own_i . other_j) other_value_j                                  O, dV
//   gradient       alpha silu'(alpha own_i . other_j) (own_value_i . other_value_j) other_j   dQ, dK
//   key_gradient   both for keys, up to head size 128                                         dK and dV
//
// No two blocks write the same row, so the order of every sum is fixed. With a relative bias the scores are
// alpha own_i . other_j + bias; `gradient` of queries then sums the gradients of the tables too.
#pragma once

#include "hstu/attention/cuda/bias.h"
#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/cuda/schedule.h"
#include "hstu/attention/hidden_keys.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

struct MmaSide {
  AttentionInput own, own_value, other, other_value;
  AttentionRows out, out_value;
  bool of_keys;  // own rows are keys
};

struct MmaArguments {
  Samples samples;
  Schedule schedule;  // of tiles of the kernel's rows, last to first
  MmaSide sides[2];   // gradient at head size 256: keys, then queries; otherwise only the first is used
  float half_alpha;   // of a softmax alpha
  int head_dim;
};

struct BiasedMmaArguments : MmaArguments {
  Bias bias;
};

// With a softmax in place of SiLU, up to head size 128:
//
//   softmax_sum             O, and the logarithms of the sums of e^score
//   softmax_key_gradient    dK and dV
//   softmax_gradient        dQ
struct SoftmaxMmaArguments : MmaArguments {
  float exponent;  // alpha log2(e)
  HiddenKeys hidden;
  float* log_sums;          // of softmax_sum; or null
  const float* statistics;  // of the gradients (softmax_statistics.h)
};

// Own rows of a tile, by the width that the kernel computes with.
constexpr int sum_mma_rows(int) {
  return 128;
}
constexpr int gradient_mma_rows(int width, bool biased) {
  return (width == 256 ? 64 : 128) / (biased ? 2 : 1);
}
constexpr int key_gradient_mma_rows(int width) {
  return width == 64 ? 64 : 128;
}

// `Arguments`: MmaArguments or BiasedMmaArguments. `items`: an upper bound of the schedule's items.
template <typename T, int kD, typename Arguments>
void launch_sum_mma(const Arguments& arguments, std::int64_t items, cudaStream_t stream);
template <typename T, int kD, typename Arguments>
void launch_gradient_mma(const Arguments& arguments, std::int64_t items, cudaStream_t stream);
template <typename T, int kD, typename Arguments>
void launch_key_gradient_mma(const Arguments& arguments, std::int64_t items, cudaStream_t stream);

// Tiles of kBackwardTile rows.
template <typename T, int kD>
void launch_softmax_sum_mma(const SoftmaxMmaArguments& arguments, std::int64_t items, cudaStream_t stream);
template <typename T, int kD>
void launch_softmax_gradient_mma(const SoftmaxMmaArguments& arguments, std::int64_t items,
                                 cudaStream_t stream);
template <typename T, int kD>
void launch_softmax_key_gradient_mma(const SoftmaxMmaArguments& arguments, std::int64_t items,
                                     cudaStream_t stream);

}  // namespace hstu::cuda
