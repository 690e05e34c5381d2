// y[t] = drop(sum over sources of factor * rows[index[t]]), for token assembly, embedding expansion, position
// and time encoding; and its transpose, which sums token gradients by source row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/dropout.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

template <typename T>
struct GatherSource {
  const T* rows = nullptr;              // (count, width)
  std::int64_t count = 0;               // number of rows; indices are below it
  const std::int32_t* index = nullptr;  // (tokens) row of each token, negative for none
  Accumulator<T> factor = 1;
};

template <typename T>
struct GatherSum {
  std::int64_t tokens = 0, width = 0;
  std::vector<GatherSource<T>> sources;
  T* y = nullptr;   // (tokens, width)
  Dropout dropout;  // of the rows of y
};

// y[t] = rows[index[t]], zeros where there is none.
template <typename T>
struct GatherRows {
  std::int64_t tokens = 0, width = 0;
  const T* rows = nullptr;  // (count, width)
  std::int64_t count = 0;
  const std::int32_t* index = nullptr;  // (tokens) as in GatherSource
  T* y = nullptr;                       // (tokens, width), rows `stride` apart
  std::int64_t stride = 0;
};

template <typename T>
struct ApplyDropout {
  std::int64_t rows = 0, width = 0;
  const T* x = nullptr;  // (rows, width)
  T* y = nullptr;        // (rows, width) x times dropout's factors; may be x itself
  Dropout dropout;
};

template <typename T, typename Out = T>
struct ScatterAdd {
  std::int64_t tokens = 0, width = 0;
  const T* dy = nullptr;  // (tokens, width), rows `stride` apart
  std::int64_t stride = 0;
  const std::int32_t* index = nullptr;  // (tokens) as in GatherSource, like count and factor
  std::int64_t count = 0;
  Accumulator<T> factor = 1;
  Gradient<Out> drows;  // (count, width)
};

template <typename T>
void gather_sum(const GatherSum<T>& p, HostStream);
template <typename T>
void gather_sum(const GatherSum<T>& p, CudaStream);

// Independent of each other; on a GPU few launches.
template <typename T>
void gather_rows(std::span<const GatherRows<T>> all, HostStream);
template <typename T>
void gather_rows(std::span<const GatherRows<T>> all, CudaStream);

template <typename T>
void apply_dropout(const ApplyDropout<T>& p, HostStream);
template <typename T>
void apply_dropout(const ApplyDropout<T>& p, CudaStream);

// The gradient of row r is the sum of factor * dy[t] over the tokens with index[t] == r, in ascending order
// of t (fixed chunks, so the sum does not depend on the number of threads).
// Written in order.
template <typename T>
void scatter_add(std::span<const ScatterAdd<T>> all, HostStream);
// Those of few tokens are one launch.
template <typename T, typename Out>
void scatter_add(std::span<const ScatterAdd<T, Out>> all, CudaStream);

}  // namespace hstu::kernels
