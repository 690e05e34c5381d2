// A block computes all of the MLP for eight rows, with the weights in shared memory: between its steps it
// waits for its own threads instead of a launch. In the backward pass it writes its sums of the gradients of
// parameters to memory of its own; those of all blocks are then added up (part_sums.cuh).
#include <algorithm>

#include "hstu/kernels/cuda/part_sums.cuh"
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/mlp_shape.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

constexpr int kRows = static_cast<int>(kMlpRows);
static_assert(kRows == kWarps, "a warp has a row");

struct Problem {
  int rows, in, hidden, out;
  bool is_normalised;
  float epsilon;
  const float* x;
  const float* parameters[kMlpParameters];
};
template <typename Pass>
Problem problem_of(const Pass& p) {
  const MlpShape& s = p.shape;
  Problem problem{static_cast<int>(s.rows),
                  static_cast<int>(s.in),
                  static_cast<int>(s.hidden),
                  static_cast<int>(s.out),
                  s.is_normalised,
                  p.epsilon,
                  p.x,
                  {}};
  std::copy(p.parameters.begin(), p.parameters.end(), problem.parameters);
  return problem;
}

struct Statistics {
  float mean, rstd;
};
// Of a row, by a warp.
__device__ Statistics statistics(const float* row, int width, float epsilon) {
  const int lane = threadIdx.x % 32;
  float sum = 0, squares = 0;
  for (int c = lane; c < width; c += 32) sum += row[c];
  const float mean = warp_sum(sum) / static_cast<float>(width);
  for (int c = lane; c < width; c += 32) squares += (row[c] - mean) * (row[c] - mean);
  return {mean, 1 / sqrtf(warp_sum(squares) / static_cast<float>(width) + epsilon)};
}

// A matrix (rows, columns) in shared memory, whose rows are one element longer.
struct Weights {
  float* at;
  int stride;

  __device__ float operator()(int row, int column) const { return at[row * stride + column]; }
};
__device__ Weights load_weights(const float* from, int rows, int columns, float* to) {
#pragma unroll 8
  for (int i = threadIdx.x; i < rows * columns; i += kThreads) to[i + i / columns] = from[i];
  return {to, columns + 1};
}

// The rows (kRows, width) of a block from `from` (rows, width); zeros after the last.
__device__ void load_rows(const float* from, int rows, int width, float* to) {
  const int first = static_cast<int>(blockIdx.x) * kRows;
  for (int i = threadIdx.x; i < kRows * width; i += kThreads)
    to[i] = first + i / width < rows ? from[first * width + i] : 0;
}

// result(r, c, sum over k of left[r, k] * right(k, c)) for all rows and columns. A thread has two rows.
template <typename Right, typename Result>
__device__ void multiply(const float* left, int depth, int columns, const Right& right,
                         const Result& result) {
  for (int i = threadIdx.x; i < columns * (kRows / 2); i += kThreads) {
    const int c = i % columns, r = i / columns * 2;
    const float *const first = left + r * depth, *const second = first + depth;
    float a = 0, b = 0;
#pragma unroll 8
    for (int k = 0; k < depth; ++k) {
      const float w = right(k, c);
      a += first[k] * w;
      b += second[k] * w;
    }
    result(r, c, a);
    result(r + 1, c, b);
  }
}

// What both passes compute, in shared memory: x, h = x W1 + b1, a = h sigmoid(norm(h)), z = a W2 + b2, for
// kRows rows; the statistics of this warp's row of h.
struct Tile {
  Weights weight1, weight2;
  float *x, *h, *a, *z;
  float* rest;  // shared memory that is left
  Statistics of_h;
};

__device__ Tile compute_tile(const Problem& p, float* shared) {
  Tile t;
  t.weight1 = load_weights(p.parameters[kMlpWeight1], p.in, p.hidden, shared);
  shared += p.in * (p.hidden + 1);
  t.weight2 = load_weights(p.parameters[kMlpWeight2], p.hidden, p.out, shared);
  shared += p.hidden * (p.out + 1);
  t.x = shared;
  t.h = t.x + kRows * p.in;
  t.a = t.h + kRows * p.hidden;
  t.z = t.a + kRows * p.hidden;
  t.rest = t.z + kRows * p.out;
  load_rows(p.x, p.rows, p.in, t.x);
  __syncthreads();
  multiply(t.x, p.in, p.hidden, t.weight1,
           [&](int r, int c, float sum) { t.h[r * p.hidden + c] = sum + p.parameters[kMlpBias1][c]; });
  __syncthreads();
  const int row = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float* const h = t.h + row * p.hidden;
  t.of_h = statistics(h, p.hidden, p.epsilon);
  for (int c = lane; c < p.hidden; c += 32) {
    const float n = (h[c] - t.of_h.mean) * t.of_h.rstd;
    t.a[row * p.hidden + c] =
        h[c] * sigmoid(n * p.parameters[kMlpSwishWeight][c] + p.parameters[kMlpSwishBias][c]);
  }
  __syncthreads();
  multiply(t.a, p.hidden, p.out, t.weight2,
           [&](int r, int c, float sum) { t.z[r * p.out + c] = sum + p.parameters[kMlpBias2][c]; });
  __syncthreads();
  return t;
}

struct ForwardArguments {
  Problem problem;
  float* y;
};
__global__ void __launch_bounds__(kThreads) forward(const ForwardArguments arguments) {
  extern __shared__ float shared[];
  hstu::cuda::wait_for_previous_launch();
  const Problem& p = arguments.problem;
  const Tile t = compute_tile(p, shared);
  const int row = threadIdx.x / 32, lane = threadIdx.x % 32, r = static_cast<int>(blockIdx.x) * kRows + row;
  if (r >= p.rows) return;
  const float* const z = t.z + row * p.out;
  float* const y = arguments.y + static_cast<std::int64_t>(r) * p.out;
  if (!p.is_normalised) {
    for (int c = lane; c < p.out; c += 32) y[c] = z[c];
    return;
  }
  const Statistics s = statistics(z, p.out, p.epsilon);
  for (int c = lane; c < p.out; c += 32)
    y[c] = (z[c] - s.mean) * s.rstd * p.parameters[kMlpNormWeight][c] + p.parameters[kMlpNormBias][c];
}

// From g, what reaches the normalised row n times its weight: s (g - mean(g) - n mean(g n)), for a warp's
// row. g(c) and n(c) are read twice.
template <typename G, typename N, typename Result>
__device__ void norm_gradient(int width, float rstd, const G& g, const N& n, const Result& result) {
  const int lane = threadIdx.x % 32;
  float sum = 0, products = 0;
  for (int c = lane; c < width; c += 32) {
    sum += g(c);
    products += g(c) * n(c);
  }
  const float mean = warp_sum(sum) / static_cast<float>(width),
              average = warp_sum(products) / static_cast<float>(width);
  for (int c = lane; c < width; c += 32) result(c, rstd * (g(c) - mean - n(c) * average));
}

struct BackwardArguments {
  Problem problem;
  const float* dy;
  Target<float> dx;
  float* parts;  // (blocks, size): for the elements of all parameters, in the order of MlpParameter
  std::int64_t size;
};

// Sums over the block's rows of left[r, i] * right[r, j], or of right alone, into consecutive elements.
__device__ float* sum_outer(const float* left, int rows, const float* right, int columns, float* to) {
  for (int i = threadIdx.x; i < rows * columns; i += kThreads) {
    const int k = i / columns, c = i % columns;
    float sum = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum += left[r * rows + k] * right[r * columns + c];
    to[i] = sum;
  }
  return to + rows * columns;
}
__device__ float* sum_rows(const float* right, int columns, float* to) {
  for (int c = threadIdx.x; c < columns; c += kThreads) {
    float sum = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum += right[r * columns + c];
    to[c] = sum;
  }
  return to + columns;
}

__global__ void __launch_bounds__(kThreads) backward(const BackwardArguments arguments) {
  extern __shared__ float shared[];
  hstu::cuda::wait_for_previous_launch();
  const Problem& p = arguments.problem;
  Tile t = compute_tile(p, shared);
  float *const dh = t.rest, *const gh = dh + kRows * p.hidden, *const dy = gh + kRows * p.hidden,
               *const dz = dy + kRows * p.out;
  load_rows(arguments.dy, p.rows, p.out, dy);
  __syncthreads();
  const int row = threadIdx.x / 32, lane = threadIdx.x % 32;
  {  // dz; z becomes what its norm's weight is multiplied by, times dy
    float *const z = t.z + row * p.out, *const dy_row = dy + row * p.out, *const dz_row = dz + row * p.out;
    if (p.is_normalised) {
      const Statistics s = statistics(z, p.out, p.epsilon);
      norm_gradient(
          p.out, s.rstd, [&](int c) { return dy_row[c] * p.parameters[kMlpNormWeight][c]; },
          [&](int c) { return (z[c] - s.mean) * s.rstd; }, [&](int c, float d) { dz_row[c] = d; });
      for (int c = lane; c < p.out; c += 32) z[c] = dy_row[c] * (z[c] - s.mean) * s.rstd;
    } else {
      for (int c = lane; c < p.out; c += 32) dz_row[c] = dy_row[c];
    }
  }
  __syncthreads();
  multiply(
      dz, p.out, p.hidden, [&](int k, int c) { return t.weight2(c, k); },
      [&](int r, int c, float sum) { dh[r * p.hidden + c] = sum; });  // the gradient of a
  __syncthreads();
  {  // dh; gh: what reaches the swish norm; h becomes what the norm's weight is multiplied by, times gh
    float *const h = t.h + row * p.hidden, *const d = dh + row * p.hidden, *const g = gh + row * p.hidden;
    const Statistics s = t.of_h;
    const float *const weight = p.parameters[kMlpSwishWeight], *const bias = p.parameters[kMlpSwishBias];
    for (int c = lane; c < p.hidden; c += 32) {
      const float open = sigmoid((h[c] - s.mean) * s.rstd * weight[c] + bias[c]);
      g[c] = d[c] * h[c] * open * (1 - open);
      d[c] *= open;  // the part that does not go through the norm
    }
    norm_gradient(
        p.hidden, s.rstd, [&](int c) { return g[c] * weight[c]; },
        [&](int c) { return (h[c] - s.mean) * s.rstd; }, [&](int c, float through) { d[c] += through; });
    for (int c = lane; c < p.hidden; c += 32) h[c] = g[c] * (h[c] - s.mean) * s.rstd;
  }
  __syncthreads();
  float* part = arguments.parts + blockIdx.x * arguments.size;
  part = sum_outer(t.x, p.in, dh, p.hidden, part);
  part = sum_rows(dh, p.hidden, part);
  part = sum_rows(t.h, p.hidden, part);
  part = sum_rows(gh, p.hidden, part);
  part = sum_outer(t.a, p.hidden, dz, p.out, part);
  part = sum_rows(dz, p.out, part);
  if (p.is_normalised) {
    part = sum_rows(t.z, p.out, part);
    sum_rows(dy, p.out, part);
  }
  if (arguments.dx.to == nullptr) return;
  const int first = static_cast<int>(blockIdx.x) * kRows;
  multiply(
      dh, p.hidden, p.in, [&](int k, int c) { return t.weight1(c, k); },
      [&](int r, int c, float sum) {
        if (first + r < p.rows) arguments.dx.put(static_cast<std::int64_t>(first + r) * p.in + c, sum);
      });
}

template <typename Arguments>
void launch_blocks(const char* what, void (*kernel)(const Arguments), const MlpShape& shape,
                   const Arguments& arguments, CudaStream stream) {
  hstu::cuda::allow_shared_memory(kernel, static_cast<int>(kMostMlpBytes), what);
  hstu::cuda::launch_as({.what = what,
                         .blocks = {static_cast<unsigned>(mlp_blocks(shape)), 1, 1},
                         .threads = {kThreads, 1, 1},
                         .shared_bytes = static_cast<unsigned>(mlp_shared_bytes(shape))},
                        kernel, stream.handle, arguments);
}

}  // namespace

void mlp(const MlpForward& p, CudaStream stream) {
  launch_blocks("MLP", forward, p.shape, {problem_of(p), p.y}, stream);
}

void mlp_backward(const MlpBackward& p, CudaStream stream) {
  const MlpShape& s = p.shape;
  const std::int64_t blocks = mlp_blocks(s), size = mlp_elements(s);
  Scratch<float> parts(stream, blocks * size);
  launch_blocks("MLP, backward", backward, s, {problem_of(p), p.dy, target(p.dx), parts.data(), size},
                stream);
  const std::array<std::int64_t, kMlpParameters> sizes = mlp_sizes(s);
  std::array<PartSum, kMlpParameters> sums;
  const float* part = parts.data();
  for (std::size_t i = 0; i < kMlpParameters; part += sizes[i++])
    sums[i] = sum_of(part, blocks, size, sizes[i], target(p.dparameters[i]));
  add_parts(sums, std::move(parts), stream);
}

}  // namespace hstu::kernels
