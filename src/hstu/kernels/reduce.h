// Sums over rows whose result does not depend on the number of threads: fixed blocks of rows, added in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hstu/base/threads.h"
#include "hstu/kernels/gradient.h"
#include "hstu/kernels/loops.h"

namespace hstu::kernels {

constexpr std::int64_t kRowBlock = 128;

// Calls body(begin, end, sums) for blocks of rows [0, rows); each adds to its own zeroed `sums` (width). The
// blocks' sums are then added into `total` (width) in ascending order, in T.
template <typename T, typename Body>
void sum_over_rows(std::int64_t rows, std::int64_t width, const Gradient<T>& total, const Body& body) {
  const std::int64_t blocks = (rows + kRowBlock - 1) / kRowBlock;
  std::vector<T> sums(static_cast<std::size_t>(blocks * width), T(0));
  parallel_blocks(rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    body(begin, end, sums.data() + begin / kRowBlock * width);
  });
  if (!total.accumulate) std::fill_n(total.to, width, T(0));
  for (std::int64_t b = 0; b < blocks; ++b) {
    const T* const block = sums.data() + b * width;
    for (std::int64_t c = 0; c < width; ++c) total.to[c] += block[c];
  }
}

// Passes the column sums of x (rows, n) to `total` (n).
template <typename T>
void column_sums(const T* x, std::int64_t rows, std::int64_t n, const Gradient<T>& total) {
  sum_over_rows(rows, n, total, [&](std::int64_t begin, std::int64_t end, T* sums) {
    loops<T>().column_sums(x + begin * n, end - begin, n, sums);
  });
}

// Writes or adds a finished sum (n) to its gradient.
template <typename T>
void put_gradient(const T* sum, std::int64_t n, const Gradient<T>& gradient) {
  if (gradient.to == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i)
    gradient.to[i] = gradient.accumulate ? gradient.to[i] + sum[i] : sum[i];
}

}  // namespace hstu::kernels
