#include "hstu/attention/plain/softmax.h"
#include "hstu/attention/plain/softmax_launch.cuh"

namespace hstu::cuda {
namespace {

// Shared memory of both launches.
template <int kD>
struct SoftmaxMemory {
  using Layout = SoftmaxLayout<kD>;
  float *own[2], *other[2];

  __device__ explicit SoftmaxMemory(float4* memory) {
    own[0] = reinterpret_cast<float*>(memory), own[1] = own[0] + Layout::kOwnFloats;
    other[0] = own[1] + Layout::kOwnFloats, other[1] = other[0] + Layout::kOtherFloats;
  }
  // The product of own row `r` and the lane's other row, of the first or the second pair.
  __device__ float dot(int pair, int r) const {
    return softmax_dot<kD>(own[pair] + r * Layout::kStride, other[pair] + threadIdx.x % 32 * Layout::kStride);
  }
};

// The weight of a pair, and the gradient of its score.
struct SoftmaxPair {
  float weight = 0, slope = 0;
};
// `slope`: of the weight.
__device__ SoftmaxPair softmax_pair(bool is_silu, float score, float slope, const SoftmaxRow& row) {
  if (is_silu) {
    const Silu silu = softmax_silu(score);
    return {silu.value, silu.slope * slope};
  }
  const float weight = expf(score - row.log_sum);
  return {weight, weight * (slope - row.mean)};
}

// dQ, and the numbers of each query that the other launch needs: own q and dO, other k and v.
template <typename T, int kD>
__global__ void __launch_bounds__(kPlainThreads) query_gradients(const SoftmaxArguments<T> a) {
  extern __shared__ float4 memory[];
  wait_for_previous_launch();
  const SoftmaxBlock block(a, false);
  if (!block.place.found) return;
  const SoftmaxMemory<kD> m(memory);
  const int head = block.head, lane = static_cast<int>(threadIdx.x % 32);
  const SoftmaxDropout<T> dropout(a, head);
  const CachedBias bias{a.bias, head};
  softmax_fill<kSoftmaxOwn, kD>(m.own[0], a.q, block.first, block.rows, head, a.head_dim);
  softmax_fill<kSoftmaxOwn, kD>(m.own[1], a.d_o, block.first, block.rows, head, a.head_dim);
  // Calls body(e, the lane's key is seen, its score, the slope of its weight, the pair) for the warp's rows.
  const auto for_keys = [&](const auto& body) {
    block.for_tiles([&](int begin, int count) {
      block.fill_keys<kD>(m.other[0], a.k, a.past, a.past.k, begin, count, a.head_dim);
      block.fill_keys<kD>(m.other[1], a.v, a.past, a.past.v, begin, count, a.head_dim);
      __syncthreads();
      const int key = begin + lane;
      const std::int64_t key_time = lane < count ? block.key_time(a, key) : 0;
#pragma unroll
      for (int e = 0; e < kSoftmaxEach; ++e) {
        const int r = SoftmaxBlock::warp_row(e);
        const bool sees = lane < count && block.sees(r, key);
        float score = a.alpha * m.dot(0, r), slope = m.dot(1, r);
        BiasedPair pair;
        if (sees) {
          slope *= dropout.factor(dropout.row(block.first + r), key);
          if (bias.any()) {
            pair = bias.pair(key - (block.token + r), bias.query_time(block.first + r), key_time);
            score += bias.of(pair);
          }
        }
        body(e, sees, score, slope, pair);
      }
    });
  };
  SoftmaxRow row[kSoftmaxEach];
  if (a.silu == 0) {
    RunningSoftmax running[kSoftmaxEach];
    float mean[kSoftmaxEach] = {};
    for_keys([&](int e, bool sees, float score, float slope, const BiasedPair&) {
      float before;
      const float weight = running[e].take(sees ? score : -INFINITY, before);
      mean[e] = mean[e] * before + softmax_warp_sum(sees ? weight * slope : 0.0f);
    });
#pragma unroll
    for (int e = 0; e < kSoftmaxEach; ++e) {
      const int r = SoftmaxBlock::warp_row(e);
      row[e] = {running[e].log_sum(), running[e].sum > 0 ? mean[e] / running[e].sum : 0.0f};
      if (r < block.rows && lane == 0) a.rows[(block.first + r) * a.samples.heads + head] = row[e];
    }
  }
  SoftmaxSums<kD> sums[kSoftmaxEach];
  for_keys([&](int e, bool sees, float score, float slope, const BiasedPair& biased) {
    const SoftmaxPair pair = sees ? softmax_pair(a.silu != 0, score, slope, row[e]) : SoftmaxPair();
    if (sees) bias.add_gradient(biased, block.place.scale * pair.slope);
    sums[e].add(pair.slope, m.other[0]);
  });
#pragma unroll
  for (int e = 0; e < kSoftmaxEach; ++e) {
    const int r = SoftmaxBlock::warp_row(e);
    if (r < block.rows)
      sums[e].write(a.dq.at(block.first + r, head), a.head_dim, a.alpha * block.place.scale,
                    a.accumulate_dq != 0);
  }
}

// dK and dV: own k and v, other q and dO.
template <typename T, int kD>
__global__ void __launch_bounds__(kPlainThreads) key_gradients(const SoftmaxArguments<T> a) {
  extern __shared__ float4 memory[];
  wait_for_previous_launch();
  const SoftmaxBlock block(a, true);
  if (!block.place.found) return;
  const SoftmaxMemory<kD> m(memory);
  const int head = block.head, lane = static_cast<int>(threadIdx.x % 32);
  const SoftmaxDropout<T> dropout(a, head);
  const CachedBias bias{a.bias, head};
  const SampleRows& queries = block.place.queries;
  softmax_fill<kSoftmaxOwn, kD>(m.own[0], a.k, block.first, block.rows, head, a.head_dim);
  softmax_fill<kSoftmaxOwn, kD>(m.own[1], a.v, block.first, block.rows, head, a.head_dim);
  SoftmaxSums<kD> of_keys[kSoftmaxEach], of_values[kSoftmaxEach];
  block.for_tiles([&](int begin, int count) {
    const std::int64_t first = static_cast<std::int64_t>(queries.first_row) + begin, query = first + lane;
    softmax_fill<kSoftmaxOther, kD>(m.other[0], a.q, first, count, head, a.head_dim);
    softmax_fill<kSoftmaxOther, kD>(m.other[1], a.d_o, first, count, head, a.head_dim);
    __syncthreads();
    SoftmaxRow row;
    std::uint64_t dropout_row = 0;
    std::int64_t query_time = 0;
    if (lane < count) {
      if (a.silu == 0) row = a.rows[query * a.samples.heads + head];
      dropout_row = dropout.row(query);
      query_time = bias.query_time(query);
    }
#pragma unroll
    for (int e = 0; e < kSoftmaxEach; ++e) {
      const int r = SoftmaxBlock::warp_row(e), key = block.token + r, token = queries.from + begin + lane;
      const bool sees = lane < count && block.sees(r, token);
      float score = a.alpha * m.dot(0, r);
      const float through_value = m.dot(1, r);
      SoftmaxPair pair;
      if (sees) {
        if (bias.any()) score += bias.of(bias.pair(key - token, query_time, bias.key_time(block.first + r)));
        const float factor = dropout.factor(dropout_row, key);
        pair = softmax_pair(a.silu != 0, score, through_value * factor, row);
        pair.weight *= factor;
      }
      of_keys[e].add(pair.slope, m.other[0]);
      of_values[e].add(pair.weight, m.other[1]);
    }
  });
#pragma unroll
  for (int e = 0; e < kSoftmaxEach; ++e) {
    const int r = SoftmaxBlock::warp_row(e);
    if (r >= block.rows) continue;
    of_keys[e].write(a.dk.at(block.first + r, head), a.head_dim, a.alpha * block.place.scale,
                     a.accumulate_dkv != 0);
    of_values[e].write(a.dv.at(block.first + r, head), a.head_dim, block.place.scale, a.accumulate_dkv != 0);
  }
}

}  // namespace

std::int64_t softmax_backward_bytes(const AttentionProblem& p) {
  return p.query_rows() * p.heads * static_cast<std::int64_t>(sizeof(SoftmaxRow));
}

void softmax_backward(const AttentionProblem& p, const AttentionGradients& g, const Bias* bias,
                      void* workspace, cudaStream_t stream) {
  with_softmax_form(p, [&]<typename T, int kD>() {
    constexpr int kBytes = SoftmaxLayout<kD>::kBackwardBytes;
    SoftmaxArguments<T> arguments = softmax_arguments<T>(p, bias);
    arguments.d_o = rows_of<T>(g.d_o);
    arguments.dq = softmax_rows<T>(g.dq);
    arguments.dk = softmax_rows<T>(g.dk);
    arguments.dv = softmax_rows<T>(g.dv);
    arguments.accumulate_dq = g.accumulate_dq;
    arguments.accumulate_dkv = g.accumulate_dkv;
    arguments.rows = static_cast<SoftmaxRow*>(workspace);
    if (p.query_rows() > 0)
      launch_grid(query_gradients<T, kD>, arguments, softmax_blocks(p, p.query_rows()), 1, kPlainThreads,
                  kBytes, stream, "softmax attention backward, queries");
    launch_grid(key_gradients<T, kD>, arguments, softmax_blocks(p, p.tokens), 1, kPlainThreads, kBytes,
                stream, "softmax attention backward, keys");
  });
}

}  // namespace hstu::cuda
