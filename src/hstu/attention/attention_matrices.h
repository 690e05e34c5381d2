// What the CPU forms of attention share: matrices of one head of one sample, their products, and the order of
// the heads of all samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "hstu/attention/problem.h"
#include "hstu/base/threads.h"
#include "hstu/kernels/loops.h"
#include "hstu/kernels/scratch.h"

namespace hstu::cpu {

// Queries whose scores a thread computes together.
inline constexpr std::int64_t kQueryBlock = 48;

// A matrix whose rows are `stride` elements apart.
template <typename T>
struct Matrix {
  T* data;
  std::int64_t stride;
  Matrix from(std::int64_t row) const { return {data + row * stride, stride}; }
  operator Matrix<const T>() const { return {data, stride}; }
};

// The rows of a matrix, or its columns, packed as the second factor of a product.
template <typename T>
class Packed {
 public:
  Packed(std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns), data_(kernels::packed_size(rows, columns)) {}
  // `from` is (rows, columns), or (columns, rows) if transposed.
  void fill(const Matrix<const T>& from, bool transposed) {
    kernels::loops<T>().pack({.k = rows_,
                              .n = columns_,
                              .b = from.data,
                              .stride = from.stride,
                              .transposed = transposed,
                              .packed = data_.data()});
  }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  const T* from_column(std::int64_t column) const { return data_.data() + column * rows_; }

 private:
  std::int64_t rows_, columns_;
  kernels::Scratch<T> data_;
};

// C (m, n) = A (m, k) B, with columns [column, column + n) of B, column a multiple of kPackedColumns.
template <typename T>
void multiply_columns(std::int64_t m, std::int64_t n, const Matrix<const T>& a, const Packed<T>& b,
                      std::int64_t column, const Matrix<T>& c) {
  kernels::loops<T>().multiply({.m = m,
                                .n = n,
                                .k = b.rows(),
                                .a = a.data,
                                .a_stride = a.stride,
                                .b = b.from_column(column),
                                .packed_rows = b.rows(),
                                .packed_columns = b.columns() - column,
                                .c = c.data,
                                .c_stride = c.stride});
}

// C (m, n) = or += A (m, k) B, or that of A (k, m) transposed, with rows [row, row + k) of B.
template <typename T>
void multiply_rows(std::int64_t m, std::int64_t k, const Matrix<T>& a, bool transposed, const Packed<T>& b,
                   std::int64_t row, bool accumulate, const Matrix<T>& c) {
  kernels::loops<T>().multiply({.m = m,
                                .n = b.columns(),
                                .k = k,
                                .a = a.data,
                                .a_stride = a.stride,
                                .a_transposed = transposed,
                                .b = b.from_column(0),
                                .packed_rows = b.rows(),
                                .packed_columns = b.columns(),
                                .first_row = row,
                                .start = accumulate ? c.data : nullptr,
                                .start_stride = c.stride,
                                .c = c.data,
                                .c_stride = c.stride});
}

// body(sample, head) in parallel, longest samples first so that threads finish together. A task owns its rows
// of the outputs, so the result does not depend on the number of threads.
template <typename Body>
void for_each_head(const AttentionProblem& p, const Body& body) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(p.samples));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return p.offsets[a + 1] - p.offsets[a] > p.offsets[b + 1] - p.offsets[b];
  });
  parallel_blocks(p.samples * p.heads, 1, [&](std::int64_t task, std::int64_t) {
    body(order[static_cast<std::size_t>(task / p.heads)], task % p.heads);
  });
}

}  // namespace hstu::cpu
