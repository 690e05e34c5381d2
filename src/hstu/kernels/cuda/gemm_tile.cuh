// What all kernels of products share: the extents, what follows the product, and sums over parts of k.
#pragma once

#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/ptx.cuh"
#include "hstu/kernels/cuda/gemm.cuh"
#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/scratch_sizes.h"

namespace hstu::kernels::cuda {

struct Extents {
  std::int64_t m, n, k;
  std::int64_t depth;  // of a part
};

template <typename Out>
class Epilogue {
 public:
  Out* c;
  std::int64_t stride;
  float alpha, beta;
  const float* bias;
  const Out* residual;
  bool relu;
  const Out* mask;
  Target<float> column_sums;  // of kernels that have them beside the product: row m of a part

  __device__ void put(std::int64_t row, std::int64_t column, float sum) const {
    c[row * stride + column] = from_float<Out>(result(row, column, sum));
  }
  // Columns `column`, even, and the next one, if there is one below n.
  __device__ void put_pair(std::int64_t row, std::int64_t column, std::int64_t n, float first,
                           float second) const {
    Out* const at = c + row * stride + column;
    if (column + 1 < n && reinterpret_cast<std::uintptr_t>(at) % (2 * sizeof(Out)) == 0) {
      struct alignas(2 * sizeof(Out)) Pair {
        Out first, second;
      };
      *reinterpret_cast<Pair*>(at) = {from_float<Out>(result(row, column, first)),
                                      from_float<Out>(result(row, column + 1, second))};
    } else {
      put(row, column, first);
      if (column + 1 < n) put(row, column + 1, second);
    }
  }

 private:
  __device__ float result(std::int64_t row, std::int64_t column, float sum) const {
    const std::int64_t at = row * stride + column;
    float x = alpha * sum;
    if (beta != 0) x += beta * to_float(c[at]);
    if (bias != nullptr) x += bias[column];
    if (residual != nullptr) x += to_float(residual[at]);
    if (relu) x = relu_of(x);
    if (mask != nullptr) x *= relu_slope(to_float(mask[at]));
    return x;
  }
};

template <typename T, typename Out>
Epilogue<Native<Out>> epilogue_of(const Product<T, Out>& p) {
  const Gemm<T, Out>& g = p.gemm;
  return {native(g.c),        g.stride_c, g.alpha,        g.beta,       p.bias,
          native(p.residual), p.relu,     native(p.mask), p.column_sums};
}

// Adds up the parts of a product, of `rows` rows each (rows_of_part), and goes on with what follows it.
template <typename Out>
__global__ void add_depths(std::int64_t count, std::int64_t rows, Extents e, const float* parts,
                           Epilogue<Out> epilogue) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows * e.n) return;
  float sum = 0;
#pragma unroll 16
  for (std::int64_t part = 0; part < count; ++part) sum += parts[part * rows * e.n + i];
  if (i / e.n < e.m)
    epilogue.put(i / e.n, i % e.n, sum);
  else
    epilogue.column_sums.put(i % e.n, sum);
}

// Of C, and one of column sums after them if there are any.
template <typename T, typename Out>
std::int64_t rows_of_part(const Product<T, Out>& p) {
  return p.gemm.m + (p.column_sums.to != nullptr ? 1 : 0);
}

template <typename T, typename Out>
void add_parts_of_depth(const Product<T, Out>& p, const Parts& parts, const float* sums, CudaStream stream) {
  const Gemm<T, Out>& g = p.gemm;
  const std::int64_t rows = rows_of_part(p);
  hstu::cuda::launch("gemm", add_depths<Native<Out>>, blocks_for(rows * g.n, kThreads), kThreads,
                     stream.handle, parts.count, rows, Extents{g.m, g.n, g.k, parts.depth}, sums,
                     epilogue_of(p));
}

// Calls launch(sums): with null where k is one part, otherwise with memory for the sums of each part, which
// are then added in ascending order.
template <typename T, typename Out, typename Launch>
void run_in_parts(const Product<T, Out>& p, const Parts& parts, CudaStream stream, const Launch& launch) {
  if (parts.count == 1) return launch(static_cast<float*>(nullptr));
  const Scratch<float> sums(stream, parts.floats(rows_of_part(p), p.gemm.n));
  launch(sums.data());
  add_parts_of_depth(p, parts, sums.data(), stream);
}

// The same for a grid of a block for each tile and part: launch(grid, extents, sums).
template <typename T, typename Out, typename Launch>
void run_grid(const Product<T, Out>& p, std::int64_t tile_rows, std::int64_t tile_columns, const Parts& parts,
              CudaStream stream, const Launch& launch) {
  const Gemm<T, Out>& g = p.gemm;
  const std::int64_t columns = (g.n + tile_columns - 1) / tile_columns;
  require(columns < 65536, "a product of {} columns is too wide for one kernel", g.n);
  const dim3 grid(blocks_for(g.m, tile_rows), static_cast<unsigned>(columns),
                  static_cast<unsigned>(parts.count));
  run_in_parts(p, parts, stream, [&](float* sums) {
    launch(grid, Extents{g.m, g.n, g.k, parts.depth}, sums);
  });
}

}  // namespace hstu::kernels::cuda
