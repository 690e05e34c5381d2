// The relative bias in the plain kernels, pair by pair.
#pragma once

#include "hstu/attention/cuda/bias.cuh"

namespace hstu::cuda {

enum class PlainRole { output, query_gradient, key_gradient };

// A problem without a bias.
struct PlainNoBias {
  static constexpr bool kAny = false;
};

// The bias of a thread's own row against other rows, and the gradients of the tables. The query role adds
// these: it meets every pair too.
template <PlainRole kRole>
struct PlainBias {
  static constexpr bool kAny = true;
  const Bias& bias;
  int head, token;        // of the own row
  float scale;            // missing in gradients of scores
  std::int64_t time = 0;  // of the own row, if it exists
  int bucket = 0;         // of the pair that `of` saw last
  BucketRun run = {};

  // Of the other row that is the sample's token `other` and row `row` of the batch.
  __device__ __forceinline__ int entry(int other) const {
    return position_entry(bias, kRole == PlainRole::key_gradient ? token - other : other - token);
  }
  __device__ __forceinline__ float of(int other, std::int64_t row) {
    float sum = 0;
    if (bias.position != nullptr) sum += __ldg(position_table(bias, head) + entry(other));
    if (bias.time != nullptr) {
      const Ticks& others = kRole == PlainRole::key_gradient ? bias.queries : bias.keys;
      bucket = bucket_of_any(bias, distance_of(time, __ldg(others.times + row)));
      sum += __ldg(time_table(bias, head) + bucket);
    }
    return sum;
  }
  // Of the pair that `of` saw last.
  __device__ __forceinline__ void add(int other, float gradient) {
    if (bias.d_position.bins != nullptr) add_to_position(bias, head, entry(other), scale * gradient);
    if (bias.d_time.bins != nullptr)
      run.add(bias, head, static_cast<int>(blockIdx.x), scale, bucket, gradient);
  }
  __device__ __forceinline__ void finish() const {
    if (bias.d_time.bins != nullptr) run.flush(bias, head, static_cast<int>(blockIdx.x), scale);
  }
};

}  // namespace hstu::cuda
