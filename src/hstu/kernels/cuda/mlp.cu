// A block computes all of the MLP for eight rows, with the weights in shared memory: between its steps it
// waits for its own threads instead of a launch, and it requests all it reads at once. In the backward pass
// it writes its sums of the gradients of parameters to memory of its own; those of all blocks are then added
// up (part_sums.cuh).
#include <algorithm>

#include "hstu/kernels/cuda/mlp_tile.cuh"
#include "hstu/kernels/cuda/part_sums.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;
using namespace cuda::mlp_tile;

template <typename Pass>
Problem problem_of(const Pass& p) {
  const MlpShape& s = p.shape;
  Problem problem{static_cast<int>(s.rows),
                  Width(s.in),
                  Width(s.hidden),
                  Width(s.out),
                  s.is_normalised,
                  p.epsilon,
                  mlp_layout(s),
                  p.x,
                  {}};
  std::copy(p.parameters.begin(), p.parameters.end(), problem.parameters);
  return problem;
}

struct ForwardArguments {
  Problem problem;
  const float* addend;
  float* y;
};
__global__ void __launch_bounds__(kThreads, 1) mlp_forward(const ForwardArguments arguments) {
  hstu::cuda::wait_for_previous_launch();
  const Problem& p = arguments.problem;
  const Arrays s(p, shared_memory());
  compute_hidden<false>(p, s, arguments.addend);
  const bool adds = arguments.addend != nullptr;
  const int first = static_cast<int>(blockIdx.x) * kRows;
  const auto row_of_y = [&](int r) { return static_cast<std::int64_t>(first + r) * p.out.size; };
  compute_result(p, s, [&](int r, int c, float2 z) {
    if (p.is_normalised) return store_pair(s.z[r] + c, z);
    if (first + r >= p.rows) return;
    if (adds) z.x += s.addend[r][c], z.y += s.addend[r][c + 1];
    put_pair({arguments.y, false}, row_of_y(r), c, p.out.size, z);
  });
  if (!p.is_normalised) return;
  __syncthreads();
  const int row = s.thread.warp;
  if (first + row >= p.rows) return;
  const Statistics of_z = statistics(s.thread, s.z[row], p.out, p.epsilon);
  const float *const weight = s.vector(p, kMlpNormWeight), *const bias = s.vector(p, kMlpNormBias);
  for_quads(s.thread, p.out, [&](int c) {
    const Quad z = load_quad(s.z[row] + c), w = load_quad(weight + c), b = load_quad(bias + c);
    Quad y;
#pragma unroll
    for (int i = 0; i < 4; ++i) y.v[i] = (z.v[i] - of_z.mean) * of_z.rstd * w.v[i] + b.v[i];
    if (adds) {
      const Quad added = load_quad(s.addend[row] + c);
#pragma unroll
      for (int i = 0; i < 4; ++i) y.v[i] += added.v[i];
    }
    put_quad(arguments.y + row_of_y(row), c, p.out.size, y);
  });
}

// Both at once, so that the latencies of their shuffles overlap.
__device__ void warp_sums(float& a, float& b) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const float other_a = __shfl_xor_sync(0xffffffffu, a, step),
                other_b = __shfl_xor_sync(0xffffffffu, b, step);
    a += other_a;
    b += other_b;
  }
}

// For a warp's row x of statistics (mean, rstd), with n = (x - mean) rstd, from g, the gradient of n weight:
// result(c, elements [c, c + 4) of rstd (w - mean(w) - n mean(w n))), the gradient of x, where w = g weight;
// x becomes g n, which is summed for the gradient of weight. w is zero beyond the width, and so is the
// result.
template <typename Result>
__device__ void norm_gradient(const Thread& t, const Width& width, const Statistics& of_x,
                              const float* weight, const float* g_row, float* x_row, const Result& result) {
  const auto read = [&](int c, Quad& w, Quad& n) {
    const Quad factor = load_quad(weight + c);
    w = load_quad(g_row + c);
    n = load_quad(x_row + c);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      w.v[i] *= factor.v[i];
      n.v[i] = (n.v[i] - of_x.mean) * of_x.rstd;
    }
  };
  float sum = 0, products = 0;
  for_quads(t, width, [&](int c) {
    Quad w, n;
    read(c, w, n);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sum += w.v[i];
      products += w.v[i] * n.v[i];
    }
  });
  warp_sums(sum, products);
  const float mean = sum * width.one_by_size, average = products * width.one_by_size;
  for_quads(t, width, [&](int c) {
    Quad w, n, d;
    read(c, w, n);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      d.v[i] = c + i < width.size ? of_x.rstd * (w.v[i] - mean - n.v[i] * average) : 0;
    result(c, d);
    const Quad g = load_quad(g_row + c);
#pragma unroll
    for (int i = 0; i < 4; ++i) n.v[i] *= g.v[i];
    store_quad(x_row + c, n);
  });
}

struct BackwardArguments {
  Problem problem;
  const float* dy;
  Target<float> dx;
  float* parts;  // (blocks, size): for the elements of all parameters, in the order of MlpParameter
  std::int64_t size;
};

// dz of a warp's row; z becomes what its norm's weight is multiplied by, times dy.
__device__ void last_norm_gradient(const Problem& p, const Arrays& s) {
  const int row = s.thread.warp;
  float *const z = s.z[row], *const dz = s.dz[row];
  norm_gradient(s.thread, p.out, statistics(s.thread, z, p.out, p.epsilon), s.vector(p, kMlpNormWeight),
                s.dy[row], z, [&](int c, const Quad& d) { store_quad(dz + c, d); });
}

// From the gradient of a in dh and the gate in gh, for a warp's row: dh; gh, what reaches the swish norm; h
// becomes what the norm's weight is multiplied by, times gh.
__device__ void swish_norm_gradient(const Problem& p, const Arrays& s, const Statistics& of_h) {
  const int row = s.thread.warp;
  float *const h = s.h[row], *const dh = s.dh[row], *const gh = s.gh[row];
  for_quads(s.thread, p.hidden, [&](int c) {
    const Quad of_row = load_quad(h + c);
    Quad d = load_quad(dh + c), gate = load_quad(gh + c);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float through_gate = d.v[i] * gate.v[i];  // the part that does not go through the norm
      gate.v[i] = through_gate * of_row.v[i] * (1 - gate.v[i]);
      d.v[i] = through_gate;
    }
    store_quad(dh + c, d);
    store_quad(gh + c, gate);
  });
  norm_gradient(s.thread, p.hidden, of_h, s.vector(p, kMlpSwishWeight), gh, h, [&](int c, Quad d) {
    const Quad before = load_quad(dh + c);
#pragma unroll
    for (int i = 0; i < 4; ++i) d.v[i] += before.v[i];
    store_quad(dh + c, d);
  });
}

// The sums over the block's rows that are the gradients of parameters, to their places in `part`.
__device__ void sum_rows(const Problem& p, const Arrays& s, const Rows& dz, float* part) {
  const int warp = s.thread.warp;
  float *const of_hidden = part + p.in.size * p.hidden.size, *const weight2 = of_hidden + 3 * p.hidden.size,
               *const of_out = weight2 + p.hidden.size * p.out.size;
  // A warp has a vector: of dh, h, gh; of dz, z, dy.
  if (warp < (p.is_normalised ? 6 : 4)) {
    const bool is_of_hidden = warp < 3;
    const Width& width = is_of_hidden ? p.hidden : p.out;
    const int place = is_of_hidden ? warp : warp - 3;
    const Rows first = is_of_hidden ? s.dh : dz;
    const float* const rows = first[place * kRows];
    float* const to = (is_of_hidden ? of_hidden : of_out) + place * width.size;
    for_quads(s.thread, width, [&](int c) {
      Quad sum{};
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const Quad x = load_quad(rows + r * first.stride + c);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum.v[i] += x.v[i];
      }
      put_quad(to, c, width.size, sum);
    });
  }
  // A thread has four by four elements of weight 1, x times dh, or of weight 2, a times dz.
  const int tiles1 = p.in.padded / 4 * (p.hidden.padded / 4),
            tiles = tiles1 + p.hidden.padded / 4 * (p.out.padded / 4);
#pragma unroll 1
  for (int tile = s.thread.index; tile < tiles; tile += kThreads) {
    const bool is_first = tile < tiles1;
    const int i = 4 * (is_first ? tile : tile - tiles1), k = 4 * (is_first ? p.hidden : p.out).row_of(i),
              c = i - k / 4 * (is_first ? p.hidden.padded : p.out.padded);
    const int depth = is_first ? p.in.size : p.hidden.size, columns = is_first ? p.hidden.size : p.out.size;
    const Rows left = is_first ? s.x : s.a, right = is_first ? s.dh : dz;
    float* const to = is_first ? part : weight2;
    Quad sums[4] = {};
#pragma unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Quad l = load_quad(left[r] + k), d = load_quad(right[r] + c);
#pragma unroll
      for (int m = 0; m < 4; ++m)
#pragma unroll
        for (int n = 0; n < 4; ++n) sums[m].v[n] += l.v[m] * d.v[n];
    }
#pragma unroll
    for (int m = 0; m < 4; ++m)
      if (k + m < depth) put_quad(to + (k + m) * columns, c, columns, sums[m]);
  }
}

__global__ void __launch_bounds__(kThreads, 1) mlp_backward(const BackwardArguments arguments) {
  hstu::cuda::wait_for_previous_launch();
  const Problem& p = arguments.problem;
  const Arrays s(p, shared_memory());
  const Statistics of_h = compute_hidden<true>(p, s, arguments.dy);
  if (p.is_normalised) {
    compute_result(p, s, [&](int r, int c, float2 z) { store_pair(s.z[r] + c, z); });
    __syncthreads();
    last_norm_gradient(p, s);
    __syncthreads();
  }
  const Rows dz = p.is_normalised ? s.dz : s.dy;
  multiply_transposed(s.thread, dz, p.out, s.weight2, p.hidden,
                      [&](int r, int c, float2 da) { store_pair(s.dh[r] + c, da); });
  __syncthreads();
  swish_norm_gradient(p, s, of_h);
  __syncthreads();
  sum_rows(p, s, dz, arguments.parts + blockIdx.x * arguments.size);
  if (arguments.dx.to == nullptr) return;
  const int first = static_cast<int>(blockIdx.x) * kRows;
  multiply_transposed(s.thread, s.dh, p.hidden, s.weight1, p.in, [&](int r, int c, float2 dx) {
    if (first + r < p.rows)
      put_pair(arguments.dx, static_cast<std::int64_t>(first + r) * p.in.size, c, p.in.size, dx);
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
  launch_blocks("MLP", mlp_forward, p.shape, {problem_of(p), p.addend, p.y}, stream);
}

void mlp_backward(const MlpBackward& p, CudaStream stream) {
  const MlpShape& s = p.shape;
  const std::int64_t blocks = mlp_blocks(s), size = mlp_elements(s);
  Scratch<float> parts(stream, blocks * size);
  launch_blocks("MLP, backward", mlp_backward, s, {problem_of(p), p.dy, target(p.dx), parts.data(), size},
                stream);
  const std::array<std::int64_t, kMlpParameters> sizes = mlp_sizes(s);
  std::array<PartSum, kMlpParameters> sums;
  const float* part = parts.data();
  for (std::size_t i = 0; i < kMlpParameters; part += sizes[i++])
    sums[i] = sum_of(part, blocks, size, sizes[i], target(p.dparameters[i]));
  add_parts(sums, std::move(parts), stream);
}

}  // namespace hstu::kernels
