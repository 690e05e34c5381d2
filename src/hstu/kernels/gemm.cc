#include "hstu/kernels/gemm.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <omp.h>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"

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

template <typename T>
struct Product {
  Op op_a, op_b;
  T alpha;
  const T* a;
  std::int64_t stride_a;
  const T* b;
  std::int64_t stride_b;

  // C tile (m, n) at (row, column) from depth [k0, k0 + k), on the calling thread.
  void run(std::int64_t row, std::int64_t column, std::int64_t k0, std::int64_t m, std::int64_t n,
           std::int64_t k, T beta, T* c, std::int64_t stride_c) const {
    const T* const a_tile = op_a == Op::none ? a + row * stride_a + k0 : a + k0 * stride_a + row;
    const T* const b_tile = op_b == Op::none ? b + k0 * stride_b + column : b + column * stride_b + k0;
    const OneThread one_thread;
    if constexpr (sizeof(T) == sizeof(float)) {
      cblas_sgemm(CblasRowMajor, blas(op_a), blas(op_b), blas(m), blas(n), blas(k), alpha, a_tile,
                  blas(stride_a), b_tile, blas(stride_b), beta, c, blas(stride_c));
    } else {
      cblas_dgemm(CblasRowMajor, blas(op_a), blas(op_b), blas(m), blas(n), blas(k), alpha, a_tile,
                  blas(stride_a), b_tile, blas(stride_b), beta, c, blas(stride_c));
    }
  }
};

std::int64_t pieces(std::int64_t extent, std::int64_t piece) {
  return (extent + piece - 1) / piece;
}

// C = beta C + the sum over chunks of k, added in ascending order.
template <typename T>
void split_depth(const Product<T>& p, std::int64_t m, std::int64_t n, std::int64_t k, T beta, T* c,
                 std::int64_t stride_c) {
  const std::int64_t chunks = pieces(k, kTileDepth);
  std::vector<T> partial(static_cast<std::size_t>(chunks * m * n));
  parallel_blocks(chunks, 1, [&](std::int64_t i, std::int64_t) {
    const std::int64_t k0 = i * kTileDepth;
    p.run(0, 0, k0, m, n, std::min(kTileDepth, k - k0), T(0), partial.data() + i * m * n, n);
  });
  parallel_blocks(m, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* const out = c + r * stride_c;
      for (std::int64_t j = 0; j < n; ++j) out[j] = beta == T(0) ? T(0) : beta * out[j];
      for (std::int64_t i = 0; i < chunks; ++i) {
        const T* const in = partial.data() + (i * m + r) * n;
        for (std::int64_t j = 0; j < n; ++j) out[j] += in[j];
      }
    }
  });
}

template <typename T>
void product(const Product<T>& p, std::int64_t m, std::int64_t n, std::int64_t k, T beta, T* c,
             std::int64_t stride_c) {
  if (m == 0 || n == 0) return;
  if (omp_in_parallel() != 0) return p.run(0, 0, 0, m, n, k, beta, c, stride_c);
  const std::int64_t rows = pieces(m, kTileRows), columns = pieces(n, kTileColumns);
  if (rows * columns < kFewTiles && k >= 2 * kTileDepth) return split_depth(p, m, n, k, beta, c, stride_c);
  parallel_blocks(rows * columns, 1, [&](std::int64_t tile, std::int64_t) {
    const std::int64_t row = tile / columns * kTileRows, column = tile % columns * kTileColumns;
    p.run(row, column, 0, std::min(kTileRows, m - row), std::min(kTileColumns, n - column), k, beta,
          c + row * stride_c + column, stride_c);
  });
}

}  // namespace

template <>
void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a,
          std::int64_t stride_a, const float* b, std::int64_t stride_b, float beta, float* c,
          std::int64_t stride_c) {
  product<float>({op_a, op_b, alpha, a, stride_a, b, stride_b}, m, n, k, beta, c, stride_c);
}

template <>
void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a,
          std::int64_t stride_a, const double* b, std::int64_t stride_b, double beta, double* c,
          std::int64_t stride_c) {
  product<double>({op_a, op_b, alpha, a, stride_a, b, stride_b}, m, n, k, beta, c, stride_c);
}

}  // namespace hstu::kernels
