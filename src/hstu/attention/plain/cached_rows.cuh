// CachedKeys of a problem as the kernels on CUDA cores read them. Tokens of a sample are counted with those
// of its past, which are its first keys.
#pragma once

#include "hstu/attention/cuda/bias.cuh"
#include "hstu/attention/cuda/jagged_rows.cuh"

namespace hstu::cuda {

template <typename T>
struct CachedRows {
  Rows<const T> k, v;
  std::int32_t page_tokens;
  const std::int32_t* pages;
  const std::int64_t *page_offsets, *lengths;
  const std::int32_t* past_of;  // null: there are none
  const std::int64_t* time;
};

template <typename T>
CachedRows<T> cached_rows(const CachedKeys& past) {
  return {.k = rows_of<T>({past.k, past.row_stride, past.head_stride}),
          .v = rows_of<T>({past.v, past.row_stride, past.head_stride}),
          .page_tokens = static_cast<std::int32_t>(past.page_tokens),
          .pages = past.pages,
          .page_offsets = past.page_offsets,
          .lengths = past.lengths,
          .past_of = past.any() ? past.past_of : nullptr,
          .time = past.time};
}

// The past of a sample.
struct PastOfSample {
  int tokens = 0;
  const std::int32_t* pages = nullptr;

  PastOfSample() = default;
  template <typename T>
  __device__ PastOfSample(const CachedRows<T>& cached, int sample) {
    const int which = cached.past_of != nullptr ? cached.past_of[sample] : -1;
    if (which < 0) return;
    tokens = static_cast<int>(cached.lengths[which]);
    pages = cached.pages + cached.page_offsets[which];
  }
  // The row of its token in the pages.
  template <typename T>
  __device__ std::int64_t row(const CachedRows<T>& cached, int token) const {
    const std::int64_t page = pages[token / cached.page_tokens];
    return page * cached.page_tokens + token % cached.page_tokens;
  }
};

// A query and a key: the distance from one to the other in tokens, and their bucket.
struct BiasedPair {
  int position = 0, bucket = 0;
};

// The relative bias of the pairs of one head. Without tables all of it is 0.
struct CachedBias {
  const Bias& bias;
  int head;

  __device__ bool any() const { return bias.position != nullptr || bias.time != nullptr; }
  // Of rows of q and of k; 0 without a time table.
  __device__ std::int64_t query_time(std::int64_t row) const {
    return bias.time == nullptr ? 0 : bias.queries.times[row];
  }
  __device__ std::int64_t key_time(std::int64_t row) const {
    return bias.time == nullptr ? 0 : bias.keys.times[row];
  }
  __device__ BiasedPair pair(int position, std::int64_t query_time, std::int64_t key_time) const {
    return {position, bias.time == nullptr ? 0 : bucket_of_any(bias, distance_of(query_time, key_time))};
  }
  __device__ float of(const BiasedPair& pair) const {
    float sum = 0;
    if (bias.position != nullptr)
      sum += __ldg(position_table(bias, head) + position_entry(bias, pair.position));
    if (bias.time != nullptr) sum += __ldg(time_table(bias, head) + pair.bucket);
    return sum;
  }
  // Adds the gradient of the pair's score to those of the tables that are wanted.
  __device__ void add_gradient(const BiasedPair& pair, float gradient) const {
    if (bias.d_position.bins != nullptr)
      add_to_position(bias, head, position_entry(bias, pair.position), gradient);
    if (bias.d_time.bins != nullptr)
      add_to_time(bias, head, static_cast<int>(blockIdx.x), pair.bucket, gradient);
  }
};

}  // namespace hstu::cuda
