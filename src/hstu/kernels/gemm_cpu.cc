#include <algorithm>

#include "hstu/base/threads.h"
#include "hstu/kernels/gemm.h"
#include "hstu/kernels/loops.h"
#include "hstu/kernels/scratch.h"

namespace hstu::kernels {
namespace {

// B is packed kDepth rows at a time: a panel of so many rows stays in the cache. Tasks compute tiles of C or,
// if C is small and k is large, partial sums of C over kChunk rows. All of these depend on the shape alone,
// so the result has the same bits with any number of threads.
constexpr std::int64_t kDepth = 256, kMostDepth = 16 * kDepth;  // of B packed at once
constexpr std::int64_t kTileRows = 96, kTileColumns = 512;
constexpr std::int64_t kChunk = 512, kMostPartial = std::int64_t{1} << 18;
static_assert(kTileColumns % kPackedColumns == 0);

std::int64_t pieces(std::int64_t extent, std::int64_t piece) {
  return (extent + piece - 1) / piece;
}

// Rows [l, l + k) of op(B), packed.
template <typename T>
void pack_depth(const Gemm<T>& p, std::int64_t l, std::int64_t k, T* packed) {
  const bool transposed = p.b.op == Op::transpose;
  loops<T>().pack({.k = k,
                   .n = p.n,
                   .b = p.b.data + (transposed ? l : l * p.b.stride),
                   .stride = p.b.stride,
                   .transposed = transposed,
                   .alpha = p.alpha,
                   .packed = packed});
}

// A part of C: its rows and columns, and the depth [l, l + k).
struct Part {
  std::int64_t row = 0, m = 0, column = 0, n = 0, l = 0, k = 0;
};

// c (m, n) = start + op(A) op(B) over the part; `packed` has its depth from column 0 on.
template <typename T>
void multiply_part(const Gemm<T>& p, const Part& t, const T* packed, const Start<T>& start, T* c,
                   std::int64_t stride_c) {
  const bool transposed = p.a.op == Op::transpose;
  loops<T>().multiply({.m = t.m,
                       .n = t.n,
                       .k = t.k,
                       .a = p.a.data + (transposed ? t.l * p.a.stride + t.row : t.row * p.a.stride + t.l),
                       .a_stride = p.a.stride,
                       .a_transposed = transposed,
                       .b = packed + t.column * t.k,
                       .packed_rows = t.k,
                       .packed_columns = p.n - t.column,
                       .start = start.rows,
                       .start_stride = start.stride,
                       .c = c,
                       .c_stride = stride_c});
}

// C = start + the sum over chunks of k, added in ascending order.
template <typename T>
void split_depth(const Gemm<T>& p, const Start<T>& start) {
  const std::int64_t m = p.m, n = p.n, chunks = pieces(p.k, kChunk);
  const Scratch<T> partial(chunks * m * n);
  parallel_blocks(p.k, kChunk, [&](std::int64_t begin, std::int64_t end) {
    const Scratch<T> packed(packed_size(kDepth, n));
    T* const sum = partial.data() + begin / kChunk * m * n;
    for (std::int64_t l = begin; l < end; l += kDepth) {
      const std::int64_t k = std::min(kDepth, end - l);
      pack_depth(p, l, k, packed.data());
      multiply_part(p, {0, m, 0, n, l, k}, packed.data(), l == begin ? Start<T>{} : Start<T>{sum, n}, sum, n);
    }
  });
  parallel_blocks(m, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* const out = p.c + r * p.stride_c;
      if (start.rows == nullptr)
        std::fill_n(out, n, T(0));
      else if (start.rows != p.c)
        std::copy_n(start.rows + r * start.stride, n, out);
      for (std::int64_t i = 0; i < chunks; ++i) {
        const T* const in = partial.data() + (i * m + r) * n;
        for (std::int64_t j = 0; j < n; ++j) out[j] += in[j];
      }
    }
  });
}

// Tiles of C, whose tasks share a packed B.
template <typename T>
void split_tiles(const Gemm<T>& p, Start<T> start) {
  const std::int64_t columns = pieces(p.n, kTileColumns), tiles = pieces(p.m, kTileRows) * columns;
  const Scratch<T> packed(packed_size(std::min(p.k, kMostDepth), p.n));
  for (std::int64_t first = 0; first < p.k; first += kMostDepth) {
    const std::int64_t depth = std::min(kMostDepth, p.k - first);
    const auto packed_from = [&](std::int64_t l) { return packed.data() + packed_size(l, p.n); };
    parallel_blocks(depth, kDepth, [&](std::int64_t begin, std::int64_t end) {
      pack_depth(p, first + begin, end - begin, packed_from(begin));
    });
    parallel_blocks(tiles, 1, [&](std::int64_t tile, std::int64_t) {
      Part t;
      t.row = tile / columns * kTileRows;
      t.column = tile % columns * kTileColumns;
      t.m = std::min(kTileRows, p.m - t.row);
      t.n = std::min(kTileColumns, p.n - t.column);
      T* const c = p.c + t.row * p.stride_c + t.column;
      Start<T> from = start;
      if (from.rows != nullptr) from.rows += t.row * from.stride + t.column;
      for (std::int64_t l = 0; l < depth; l += kDepth) {
        t.l = first + l;
        t.k = std::min(kDepth, depth - l);
        multiply_part(p, t, packed_from(l), from, c, p.stride_c);
        from = {c, p.stride_c};
      }
    });
    start = {p.c, p.stride_c};
  }
}

}  // namespace

template <typename T>
void gemm_onto(const Gemm<T>& p, const Start<T>& start) {
  if (p.m == 0 || p.n == 0) return;
  const bool small = p.m * p.n <= kMostPartial && p.m * p.n < p.k * kTileRows;
  if (p.k == 0 || (small && p.k > kChunk)) return split_depth(p, start);
  split_tiles(p, start);
}

template <typename T, typename Out>
void gemm(const Gemm<T, Out>& p, HostStream) {
  if (p.beta == T(0)) return gemm_onto(p, {});
  for (std::int64_t r = 0; r < p.m && p.beta != T(1); ++r) {
    for (std::int64_t j = 0; j < p.n; ++j) p.c[r * p.stride_c + j] *= p.beta;
  }
  gemm_onto(p, {p.c, p.stride_c});
}

template void gemm_onto(const Gemm<float>&, const Start<float>&);
template void gemm_onto(const Gemm<double>&, const Start<double>&);
template void gemm(const Gemm<float>&, HostStream);
template void gemm(const Gemm<double>&, HostStream);

}  // namespace hstu::kernels
