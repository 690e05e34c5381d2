#include "hstu/attention/plain/softmax.h"
#include "hstu/attention/plain/softmax_launch.cuh"

namespace hstu::cuda {
namespace {

template <typename T, int kD>
__global__ void __launch_bounds__(kPlainThreads) outputs(const SoftmaxArguments<T> a) {
  using Layout = SoftmaxLayout<kD>;
  extern __shared__ float4 memory[];
  wait_for_previous_launch();
  const SoftmaxBlock block(a, false);
  if (!block.place.found) return;
  float *const own = reinterpret_cast<float*>(memory), *const keys = own + Layout::kOwnFloats,
               *const values = keys + Layout::kOtherFloats;
  const int head = block.head, lane = static_cast<int>(threadIdx.x % 32);
  const SoftmaxDropout<T> dropout(a, head);
  const CachedBias bias{a.bias, head};
  softmax_fill<kSoftmaxOwn, kD>(own, a.q, block.first, block.rows, head, a.head_dim);
  RunningSoftmax running[kSoftmaxEach];
  SoftmaxSums<kD> sums[kSoftmaxEach];
  block.for_tiles([&](int begin, int count) {
    block.fill_keys<kD>(keys, a.k, a.past, a.past.k, begin, count, a.head_dim);
    block.fill_keys<kD>(values, a.v, a.past, a.past.v, begin, count, a.head_dim);
    __syncthreads();
    const int key = begin + lane;
    const std::int64_t key_time = lane < count ? block.key_time(a, key) : 0;
#pragma unroll
    for (int e = 0; e < kSoftmaxEach; ++e) {
      const int r = SoftmaxBlock::warp_row(e);
      const bool sees = lane < count && block.sees(r, key);
      float score = a.alpha * softmax_dot<kD>(own + r * Layout::kStride, keys + lane * Layout::kStride);
      if (sees && bias.any())
        score += bias.of(bias.pair(key - (block.token + r), bias.query_time(block.first + r), key_time));
      float before = 1, weight = 0;
      if (a.silu == 0)
        weight = running[e].take(sees ? score : -INFINITY, before);
      else if (sees)
        weight = softmax_silu(score).value;
      if (sees) weight *= dropout.factor(dropout.row(block.first + r), key);
      sums[e].scale(before);
      sums[e].add(weight, values);
    }
  });
#pragma unroll
  for (int e = 0; e < kSoftmaxEach; ++e) {
    const int r = SoftmaxBlock::warp_row(e);
    if (r >= block.rows) continue;
    const float sum = a.silu == 0 ? running[e].sum : 1.0f, factor = sum > 0 ? block.place.scale / sum : 0.0f;
    sums[e].write(a.o.at(block.first + r, head), a.head_dim, factor, false);
  }
}

}  // namespace

void softmax_forward(const AttentionProblem& p, const AttentionRows& o, const Bias* bias,
                     cudaStream_t stream) {
  if (p.query_rows() == 0) return;
  with_softmax_form(p, [&]<typename T, int kD>() {
    SoftmaxArguments<T> arguments = softmax_arguments<T>(p, bias);
    arguments.o = softmax_rows<T>(o);
    launch_grid(outputs<T, kD>, arguments, softmax_blocks(p, p.query_rows()), 1, kPlainThreads,
                SoftmaxLayout<kD>::kForwardBytes, stream, "softmax attention forward");
  });
}

}  // namespace hstu::cuda
