// The softmax of a wgmma accumulator of scores, row by row, as its blocks of keys arrive.
#pragma once

#include "hstu/attention/cuda/accumulator.cuh"
#include "hstu/attention/cuda/softmax_statistics.h"

namespace hstu::cuda {

inline constexpr float kLn2 = 0.6931471805599453f;

__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Writes -infinity to the scores of keys that a query does not see. Unlike silu(0), e^0 is a weight: keys
// beyond the sample's end are masked too, where the causal bound does not.
template <int N>
__device__ __forceinline__ void mask_softmax_keys(float* s, const Samples& samples, const Work& w,
                                                  std::int32_t query, std::int32_t base) {
  if (w.c == 0 && w.h == w.n && samples.right == 0) {
    apply_band<N>(s, query - samples.left, query + 1, base, -INFINITY);
  } else {
    const SampleMask mask = mask_of(samples, w);
    apply_mask<N>(s, keys_of_query(mask, smaller(query, w.n - 1)),
                  keys_of_query(mask, smaller(query + 8, w.n - 1)), base, -INFINITY);
  }
}

// Of a thread's two rows. Weights are e^(score - reference). The reference is the largest score, or less by
// so little that a weight stays below 2^kSlack: sums are multiplied by a factor only where it has grown by
// more, which is rare after the first blocks. All weights of a row have one reference at the end, so that
// neither the result nor its precision depends on the slack.
class RunningSoftmax {
 public:
  // Replaces N / 2 scores by their weights. kFirst: of the rows' first keys. `factor`: of scores, to the
  // exponent of 2; positive.
  template <int N, bool kFirst>
  __device__ __forceinline__ void weigh(float* s, float factor) {
    float top[2] = {kLeast, kLeast};
#pragma unroll
    for (int i = 0; i < N / 2; i += 2) top[i / 2 % 2] = fmaxf(top[i / 2 % 2], fmaxf(s[i], s[i + 1]));
#pragma unroll
    for (float& x : top) {
      x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
      x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
    }
    if constexpr (kFirst) {
      reference_[0] = top[0], reference_[1] = top[1];
      sum_[0] = sum_[1] = 0;
      has_grown_ = false;
    } else {
      raise(top, factor);
    }
    const float offset[2] = {reference_[0] * factor, reference_[1] * factor};
#pragma unroll
    for (int i = 0; i < N / 2; i += 2) {
      s[i] = fast_exp2(fmaf(s[i], factor, -offset[i / 2 % 2]));
      s[i + 1] = fast_exp2(fmaf(s[i + 1], factor, -offset[i / 2 % 2]));
      sum_[i / 2 % 2] += s[i] + s[i + 1];
    }
  }
  // What was summed with the weights of earlier blocks.
  template <int N>
  __device__ __forceinline__ void rescale(float (&o)[N]) const {
    if (!has_grown_) return;
#pragma unroll
    for (int i = 0; i < N; ++i) o[i] *= growth_[i / 2 % 2];
  }
  // Divides by the sum of the weights, and returns the logarithms of the sums of e^score.
  template <int N>
  __device__ __forceinline__ float2 divide(float (&o)[N], float scale, float factor) {
    float logs[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum_[r] += __shfl_xor_sync(0xffffffffu, sum_[r], 1);
      sum_[r] += __shfl_xor_sync(0xffffffffu, sum_[r], 2);
      logs[r] = (reference_[r] * factor + __log2f(sum_[r])) * kLn2;
      growth_[r] = sum_[r] > 0 ? scale / sum_[r] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) o[i] *= growth_[i / 2 % 2];
    return {logs[0], logs[1]};
  }

 private:
  static constexpr float kLeast = -1e30f;  // below every score
  static constexpr float kSlack = 8;

  __device__ __forceinline__ void raise(const float (&top)[2], float factor) {
    const bool grows =
        (top[0] - reference_[0]) * factor > kSlack || (top[1] - reference_[1]) * factor > kSlack;
    has_grown_ = __any_sync(0xffffffffu, grows) != 0;
    if (!has_grown_) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float next = fmaxf(top[r], reference_[r]);
      growth_[r] = fast_exp2((reference_[r] - next) * factor);
      reference_[r] = next;
      sum_[r] *= growth_[r];
    }
  }

  float reference_[2] = {kLeast, kLeast}, sum_[2] = {}, growth_[2];
  bool has_grown_ = false;  // in the last block; the same in a warp
};

// The statistics of 64 queries (softmax_statistics.h) in shared memory, as a thread sees them whose
// accumulators are transposed: a query is a column.
struct SoftmaxBlock {
  static constexpr int kBytes = 2 * kStatisticsRows * 4;

  __device__ __forceinline__ explicit SoftmaxBlock(std::uint32_t at) : at_(at + threadIdx.x % 4 * 8) {}
  // Scores become weights. `factor`: to the exponent of 2.
  __device__ __forceinline__ void weigh(float (&s)[32], float factor) const {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float2 log_sum = load_shared_pair(at_ + j * 32);
#pragma unroll
      for (int i = 4 * j; i < 4 * j + 4; i += 2) {
        s[i] = fast_exp2(fmaf(s[i], factor, -log_sum.x));
        s[i + 1] = fast_exp2(fmaf(s[i + 1], factor, -log_sum.y));
      }
    }
  }
  // Gradients of weights become those of scores.
  __device__ __forceinline__ void differentiate(float (&dp)[32], const float (&weights)[32]) const {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float2 mean = load_shared_pair(at_ + kStatisticsRows * 4 + j * 32);
#pragma unroll
      for (int i = 4 * j; i < 4 * j + 4; i += 2) {
        dp[i] = weights[i] * (dp[i] - mean.x);
        dp[i + 1] = weights[i + 1] * (dp[i + 1] - mean.y);
      }
    }
  }
  // The same with dropout, and zeros in place of the weights that are not kept. kept.of_columns(j):
  // kept_pairs has it. `factor`: of the weights that are kept.
  template <typename Kept>
  __device__ __forceinline__ void differentiate(float (&dp)[32], float (&weights)[32], const Kept& kept,
                                                float factor) const {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float2 mean = load_shared_pair(at_ + kStatisticsRows * 4 + j * 32);
      const std::uint32_t bits = kept.of_columns(j);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float &d = dp[4 * j + i], &weight = weights[4 * j + i];
        const bool keeps = (bits >> (8 * i) & 1) != 0;
        d = weight * ((keeps ? d * factor : 0.0f) - (i % 2 == 0 ? mean.x : mean.y));
        weight = keeps ? weight : 0.0f;
      }
    }
  }

 private:
  static __device__ __forceinline__ float2 load_shared_pair(std::uint32_t from) {
    float2 pair;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(from) : "memory");
    return pair;
  }
  std::uint32_t at_;
};

}  // namespace hstu::cuda
