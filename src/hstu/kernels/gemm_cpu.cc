#include <algorithm>
#include <limits>
#include <vector>

#include <cblas.h>
#include <omp.h>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/kernels/gemm.h"

namespace hstu::kernels {
namespace {

// A product is cut into tiles of C, or along k when C is small, and every piece is one BLAS call on one
// thread. The pieces depend on the shape alone, so the result has the same bits with any number of threads,
// which BLAS's own threads do not promise; on the thin matrices of a training step they are no faster either.
constexpr std::int64_t kTileRows = 256, kTileColumns = 512, kTileDepth = 1024;
constexpr std::int64_t kFewTiles = 8;

CBLAS_TRANSPOSE blas(Op op) {
  return op == Op::none ? CblasNoTrans : CblasTrans;
}

blasint blas(std::int64_t extent) {
  require(extent <= std::numeric_limits<blasint>::max(), "a matrix extent of {} exceeds BLAS's 32-bit index",
          extent);
  return static_cast<blasint>(extent);
}

// OpenBLAS takes as many threads as OpenMP would: one, while this lives, for the calling thread.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// The tile (m, n) of C at (row, column), from depth [k0, k0 + k), on the calling thread.
struct Tile {
  std::int64_t row, column, k0, m, n, k;
};

template <typename T>
void run(const Gemm<T>& p, const Tile& t, T beta, T* c, std::int64_t stride_c) {
  const T* const a = p.a.data + (p.a.op == Op::none ? t.row * p.a.stride + t.k0 : t.k0 * p.a.stride + t.row);
  const T* const b =
      p.b.data + (p.b.op == Op::none ? t.k0 * p.b.stride + t.column : t.column * p.b.stride + t.k0);
  const OneThread one_thread;
  if constexpr (sizeof(T) == sizeof(float)) {
    cblas_sgemm(CblasRowMajor, blas(p.a.op), blas(p.b.op), blas(t.m), blas(t.n), blas(t.k), p.alpha, a,
                blas(p.a.stride), b, blas(p.b.stride), beta, c, blas(stride_c));
  } else {
    cblas_dgemm(CblasRowMajor, blas(p.a.op), blas(p.b.op), blas(t.m), blas(t.n), blas(t.k), p.alpha, a,
                blas(p.a.stride), b, blas(p.b.stride), beta, c, blas(stride_c));
  }
}

std::int64_t pieces(std::int64_t extent, std::int64_t piece) {
  return (extent + piece - 1) / piece;
}

// C = beta C + the sum over chunks of k, added in ascending order.
template <typename T>
void split_depth(const Gemm<T>& p) {
  const std::int64_t m = p.m, n = p.n, chunks = pieces(p.k, kTileDepth);
  std::vector<T> partial(static_cast<std::size_t>(chunks * m * n));
  parallel_blocks(chunks, 1, [&](std::int64_t i, std::int64_t) {
    const std::int64_t k0 = i * kTileDepth;
    run(p, {0, 0, k0, m, n, std::min(kTileDepth, p.k - k0)}, T(0), partial.data() + i * m * n, n);
  });
  parallel_blocks(m, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* const out = p.c + r * p.stride_c;
      for (std::int64_t j = 0; j < n; ++j) out[j] = p.beta == T(0) ? T(0) : p.beta * out[j];
      for (std::int64_t i = 0; i < chunks; ++i) {
        const T* const in = partial.data() + (i * m + r) * n;
        for (std::int64_t j = 0; j < n; ++j) out[j] += in[j];
      }
    }
  });
}

}  // namespace

template <typename T, typename Out>
void gemm(const Gemm<T, Out>& p, HostStream) {
  if (p.m == 0 || p.n == 0) return;
  if (omp_in_parallel() != 0) return run(p, {0, 0, 0, p.m, p.n, p.k}, p.beta, p.c, p.stride_c);
  const std::int64_t rows = pieces(p.m, kTileRows), columns = pieces(p.n, kTileColumns);
  if (rows * columns < kFewTiles && p.k >= 2 * kTileDepth) return split_depth(p);
  parallel_blocks(rows * columns, 1, [&](std::int64_t tile, std::int64_t) {
    const std::int64_t row = tile / columns * kTileRows, column = tile % columns * kTileColumns;
    run(p, {row, column, 0, std::min(kTileRows, p.m - row), std::min(kTileColumns, p.n - column), p.k},
        p.beta, p.c + row * p.stride_c + column, p.stride_c);
  });
}

template void gemm(const Gemm<float>&, HostStream);
template void gemm(const Gemm<double>&, HostStream);

}  // namespace hstu::kernels
