// Matrix products on one thread: tiles of 6 rows and up to 4 vectors of columns, whose sums stay in registers
// while the depth is walked once. Every element is the sum start + a0 b0 + a1 b1 + ... in this order, each
// step one fused multiply-add, so the width of the vectors does not change a bit.
#pragma once

#include "hstu/kernels/loops.h"
#include "hstu/kernels/loops/vectors.h"

namespace hstu::kernels {
namespace {

constexpr int kTileRows = 6;
constexpr std::int64_t kBlockRows = 48;  // of A: they stay in the cache while the panels of B go by

constexpr std::int64_t kAhead = 12;  // rows of a transposed A that are fetched before they are read

template <typename T>
constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
template <typename T>
constexpr std::int64_t kPanel = kPanelVectors* kLanes<T>;

std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

template <typename T>
std::int64_t whole_vectors(std::int64_t columns) {
  return (columns + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// A panel of B from its first row that counts, and the columns of C that it makes.
template <typename T>
struct Panel {
  const T* b;
  std::int64_t width, column;
};

// R rows of C from `row` on, V vectors of the panel's columns.
template <typename T, bool transposed, int R, int V>
[[gnu::always_inline]] inline void tile(const PanelProduct<T>& p, std::int64_t row, const Panel<T>& panel) {
  const std::int64_t column = panel.column;
  Vector<T> sum[R][V];
  const bool whole = column + V * kLanes<T> <= p.n;
  const std::int64_t columns = whole ? V * kLanes<T> : p.n - column;
  T edge[R][V * kLanes<T>];  // takes the place of C where the tile is wider
  // The rows of A that the next tile reads for the first time, and the lines of C, arrive while the sums
  // grow.
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) __builtin_prefetch(p.c + (row + r) * p.c_stride + column + v * kLanes<T>, 1);
  }
  if (!transposed && column == 0) {
    for (int r = 0; r < R; ++r) {
      const T* const next = p.a + (row + kTileRows + r) * p.a_stride;
      for (std::int64_t l = 0; l < p.k; l += kLine<T>) __builtin_prefetch(next + l);
    }
  }
  if (p.start == nullptr) {
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < V; ++v) sum[r][v] = Vector<T>{};
    }
  } else {
    for (int r = 0; r < R; ++r) {
      const T* from = p.start + (row + r) * p.start_stride + column;
      if (!whole) {
        for (std::int64_t c = 0; c < V * kLanes<T>; ++c) edge[r][c] = c < columns ? from[c] : T(0);
        from = edge[r];
      }
      for (int v = 0; v < V; ++v) sum[r][v] = load(from + v * kLanes<T>);
    }
  }
  const T* a = transposed ? p.a + row : p.a + row * p.a_stride;
  const std::int64_t step = transposed ? p.a_stride : 1, across = transposed ? 1 : p.a_stride;
  const T* b = panel.b;
  for (std::int64_t l = 0; l < p.k; ++l, a += step, b += panel.width) {
    if (transposed) __builtin_prefetch(a + kAhead * p.a_stride);
    Vector<T> in[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) in[v] = load(b + v * kLanes<T>);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const T factor = a[r * across];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] += factor * in[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    T* const out = p.c + (row + r) * p.c_stride + column;
    T* const to = whole ? out : edge[r];
    for (int v = 0; v < V; ++v) store(to + v * kLanes<T>, sum[r][v]);
    for (std::int64_t c = 0; !whole && c < columns; ++c) out[c] = edge[r][c];
  }
}

template <typename T, bool transposed, int V>
void rows_of_panel(const PanelProduct<T>& p, std::int64_t begin, std::int64_t end, const Panel<T>& panel) {
  std::int64_t row = begin;
  for (; row + kTileRows <= end; row += kTileRows) tile<T, transposed, kTileRows, V>(p, row, panel);
  switch (end - row) {
    case 5:
      return tile<T, transposed, 5, V>(p, row, panel);
    case 4:
      return tile<T, transposed, 4, V>(p, row, panel);
    case 3:
      return tile<T, transposed, 3, V>(p, row, panel);
    case 2:
      return tile<T, transposed, 2, V>(p, row, panel);
    case 1:
      return tile<T, transposed, 1, V>(p, row, panel);
    default:
      return;
  }
}

template <typename T, bool transposed>
void multiply_panels(const PanelProduct<T>& p) {
  for (std::int64_t begin = 0; begin < p.m; begin += kBlockRows) {
    const std::int64_t end = smaller(p.m, begin + kBlockRows);
    for (std::int64_t column = 0; column < p.n; column += kPanel<T>) {
      const std::int64_t width = whole_vectors<T>(smaller(kPanel<T>, p.packed_columns - column));
      const Panel<T> panel{p.b + column * p.packed_rows + p.first_row * width, width, column};
      switch (whole_vectors<T>(smaller(kPanel<T>, p.n - column)) / kLanes<T>) {
        case 1:
          rows_of_panel<T, transposed, 1>(p, begin, end, panel);
          break;
        case 2:
          rows_of_panel<T, transposed, 2>(p, begin, end, panel);
          break;
        case 3:
          if constexpr (kPanelVectors > 2) rows_of_panel<T, transposed, 3>(p, begin, end, panel);
          break;
        default:
          if constexpr (kPanelVectors > 2) rows_of_panel<T, transposed, 4>(p, begin, end, panel);
      }
    }
  }
}

template <typename T>
void multiply(const PanelProduct<T>& p) {
  p.a_transposed ? multiply_panels<T, true>(p) : multiply_panels<T, false>(p);
}

// One row of op(B) at a time where its rows are B's, so that B is read once from end to end.
template <typename T>
void pack_rows(const PackPanels<T>& p) {
  const Vector<T> alpha = p.alpha - Vector<T>{};
  for (std::int64_t l = 0; l < p.k; ++l) {
    const T* const in = p.b + l * p.stride;
    for (std::int64_t c = 0; c < p.n; c += kLine<T>) __builtin_prefetch(in + 4 * p.stride + c);
    for (std::int64_t column = 0; column < p.n; column += kPanel<T>) {
      const std::int64_t columns = smaller(kPanel<T>, p.n - column), width = whole_vectors<T>(columns);
      T* const out = p.packed + column * p.k + l * width;
      std::int64_t c = 0;
      for (; c + kLanes<T> <= columns; c += kLanes<T>) store(out + c, alpha * load(in + column + c));
      for (; c < columns; ++c) out[c] = p.alpha * in[column + c];
      for (; c < width; ++c) out[c] = T(0);
    }
  }
}

// Stored rows of B are columns of op(B): blocks of as many rows as a vector has elements are transposed in
// registers.
template <typename T>
void pack_columns(const PackPanels<T>& p) {
  for (std::int64_t column = 0; column < p.n; column += kPanel<T>) {
    const std::int64_t columns = smaller(kPanel<T>, p.n - column), width = whole_vectors<T>(columns);
    T* const out = p.packed + column * p.k;
    for (std::int64_t c = 0; c < width; c += kLanes<T>) {
      const T* const in = p.b + (column + c) * p.stride;
      const std::int64_t rows = smaller(kLanes<T>, columns - c);
      std::int64_t l = 0;
      for (; l + kLanes<T> <= p.k; l += kLanes<T>) {
        Vector<T> block[kLanes<T>];
        for (std::int64_t r = 0; r < kLanes<T>; ++r)
          block[r] = r < rows ? p.alpha * load(in + r * p.stride + l) : Vector<T>{};
        transpose<T>(block);
        for (std::int64_t r = 0; r < kLanes<T>; ++r) store(out + (l + r) * width + c, block[r]);
      }
      for (; l < p.k; ++l) {
        for (std::int64_t r = 0; r < kLanes<T>; ++r)
          out[l * width + c + r] = r < rows ? p.alpha * in[r * p.stride + l] : T(0);
      }
    }
  }
}

template <typename T>
void pack(const PackPanels<T>& p) {
  p.transposed ? pack_columns(p) : pack_rows(p);
}

}  // namespace
}  // namespace hstu::kernels
