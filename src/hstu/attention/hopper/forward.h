// The arguments and launches of the forward kernels for Hopper.
#pragma once

#include <cuda.h>

#include "hstu/attention/cuda/bias.h"
#include "hstu/attention/cuda/pair_dropout.h"
#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/cuda/schedule.h"
#include "hstu/attention/hidden_keys.h"

namespace hstu::cuda {

struct ForwardArguments {
  CUtensorMap q, k, v, o;
  Samples samples;
  Schedule schedule;
  void* o_data;
  std::int64_t o_row_stride, o_head_stride;
  float half_alpha;  // of a softmax alpha
  int head_dim;
};

struct BiasedForwardArguments : ForwardArguments {
  Bias bias;
};

struct SoftmaxForwardArguments : ForwardArguments {
  float exponent;   // alpha log2(e)
  float* log_sums;  // or null
};

struct HidingForwardArguments : SoftmaxForwardArguments {
  HiddenKeys hidden;
};

struct DroppingForwardArguments : HidingForwardArguments {  // keys may be hidden or not
  PairDropout dropout;
};

// Queries and keys of a tile, by the width that the kernel computes with (head size 32 is padded to 64 with
// zeros) and the number of blocks that share it: two of a cluster load half of the keys and values each, for
// both. With a bias, hidden keys or dropout three warpgroups have too few registers.
constexpr int forward_queries(int width, int cluster, bool two_groups) {
  return width == 64 && !two_groups ? 192 : 128 * cluster;
}
constexpr int forward_keys(int width) {
  return width == 256 ? 64 : 128;
}

// `Arguments`: any of those above.
template <typename T, int kD, int kCluster, typename Arguments>
void launch_forward_sm90(const Arguments& arguments, int multiprocessors, cudaStream_t stream);

}  // namespace hstu::cuda
