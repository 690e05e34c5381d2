// y[t] = drop(sum over sources of factor * rows[index[t]]): token assembly, embedding expansion, position and
// time encoding are all this. And its transpose, which adds token gradients up per source row.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/kernels/dropout.h"

namespace hstu::kernels {

template <typename T>
struct GatherSource {
  const T* rows;              // (n, width)
  const std::int32_t* index;  // (tokens) row of each token, negative for none
  T factor;
};

// y (tokens, width). Dropout's element index is the position in y.
template <typename T>
void gather_sum(const std::vector<GatherSource<T>>& sources, std::int64_t tokens, std::int64_t width,
                const Dropout& dropout, T* y);

// out = x * dropout's factors, elementwise over (rows, width).
template <typename T>
void apply_dropout(const T* x, std::int64_t rows, std::int64_t width, const Dropout& dropout, T* out);

// rows[index[t]] += factor * dy[t] for every token with index[t] >= 0, in ascending order of t for each row
// (fixed chunks, so the sum does not depend on the number of threads). rows is (n, width).
template <typename T>
void scatter_add(const T* dy, const std::int32_t* index, std::int64_t tokens, std::int64_t width, T factor,
                 std::int64_t n, T* rows);

}  // namespace hstu::kernels
