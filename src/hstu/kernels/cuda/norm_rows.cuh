// Rows of a normalisation in registers: a team of warps computes a few rows at a time, so that one waits for
// its sums while another computes, and a lane has eight neighbouring elements of each. Sums over rows for
// each column stay in registers too, and are added in a fixed order.
#pragma once

#include "hstu/device/cuda/ptx.cuh"
#include "hstu/kernels/cuda/add_partials.cuh"
#include "hstu/kernels/cuda/dropout.cuh"
#include "hstu/kernels/cuda/rows.cuh"

namespace hstu::kernels::cuda {

inline constexpr std::int64_t kWarpColumns = 32 * kGroup, kWidestRow = kWarps * kWarpColumns;

// The warps of a block that share a row.
class Team {
 public:
  __device__ explicit Team(int warps) : warps_(warps) {}

  __device__ int index() const { return threadIdx.x / (32 * warps_); }
  __device__ int count() const { return kWarps / warps_; }  // in a block
  // The first of this lane's columns.
  __device__ int column() const { return threadIdx.x % (32 * warps_) * static_cast<int>(kGroup); }

  // The sums over all lanes, in every lane, of each of kCount numbers.
  template <int kCount>
  __device__ void sum(float (&x)[kCount]) {
    static_assert(kCount <= kMostSums);
#pragma unroll
    for (int i = 0; i < kCount; ++i) x[i] = warp_sum(x[i]);
    if (warps_ == 1) return;
    __shared__ float sums[2][kWarps][kMostSums];  // by turns, so that one barrier is enough
    const int first = index() * warps_;
    if (lane() == 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) sums[turn_][threadIdx.x / 32][i] = x[i];
    }
    hstu::cuda::named_barrier(1 + index(), 32 * warps_);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      x[i] = sums[turn_][first][i];
      for (int w = 1; w < warps_; ++w) x[i] += sums[turn_][first + w][i];
    }
    turn_ ^= 1;
  }

 private:
  static constexpr int kMostSums = 4;
  int warps_, turn_ = 0;
};

// The rows that a team computes at a time: first, first + step, ...
struct RowsAtOnce {
  std::int64_t first, step, end;
  __device__ std::int64_t operator[](int i) const { return first + i * step; }
  __device__ bool has(int i) const { return first + i * step < end; }
};

template <int kRows>
struct RowStatistics {
  float mean[kRows], rstd[kRows];
};

// Of rows of `width`, of which this lane has x, zero beyond the row. In two passes.
template <int kRows>
__device__ RowStatistics<kRows> row_statistics(const float (&x)[kRows][kGroup], std::int64_t width,
                                               float epsilon, Team& team) {
  RowStatistics<kRows> s;
  float sum[kRows] = {};
#pragma unroll
  for (int k = 0; k < kRows; ++k)
#pragma unroll
    for (int i = 0; i < kGroup; ++i) sum[k] += x[k][i];
  team.sum(sum);
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    s.mean[k] = sum[k] / static_cast<float>(width);
    sum[k] = 0;
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float d = team.column() + i < width ? x[k][i] - s.mean[k] : 0.0f;
      sum[k] += d * d;
    }
  }
  team.sum(sum);
#pragma unroll
  for (int k = 0; k < kRows; ++k) s.rstd[k] = rsqrtf(sum[k] / static_cast<float>(width) + epsilon);
  return s;
}

inline int warps_of(std::int64_t width) {
  require(width <= kWidestRow, "a norm of {} elements is too wide for a GPU: at most {}", width, kWidestRow);
  int warps = 1;
  while (warps * kWarpColumns < width) warps *= 2;
  return warps;
}

// A lane's part of the norm's weight and bias.
struct Affine {
  float weight[kGroup], bias[kGroup];

  __device__ Affine(const float* w, const float* b, std::int64_t c, std::int64_t width) {
    load_group(w, c, width, weight);
    load_group(b, c, width, bias);
  }
};

// What the kernels below call: inputs = body.load(row, column) reads what a lane needs of a row, and
// body(rows, team, affine, inputs) computes Body::kRows of them; inputs of a row that is not there are zero.
// The next rows are loaded first, so that loads and arithmetic overlap.
template <typename Body, typename Compute>
__device__ void visit_rows(std::int64_t rows, const Team& team, const Body& body, const Compute& compute) {
  using Inputs = decltype(body.load(0, 0));
  const std::int64_t c = team.column(), step = static_cast<std::int64_t>(gridDim.x) * team.count();
  RowsAtOnce at{static_cast<std::int64_t>(blockIdx.x) * team.count() + team.index(), step, rows};
  constexpr int kRows = Body::kRows;
  Inputs next[kRows];
  const auto load = [&](const RowsAtOnce& from) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) next[k] = from.has(k) ? body.load(from[k], c) : Inputs();
  };
  load(at);
  while (at.has(0)) {
    Inputs inputs[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) inputs[k] = next[k];
    RowsAtOnce after = at;
    after.first += kRows * step;
    load(after);
    compute(at, inputs);
    at = after;
  }
}

// Blocks on a multiprocessor at a time, and on a GPU of 132 multiprocessors: constants, so that sums are the
// same on every GPU.
inline constexpr int kTogether = 2;
inline constexpr std::int64_t kNormBlocks = 132 * kTogether;

template <typename Body>
__global__ void __launch_bounds__(kThreads, kTogether)
    each_norm_row(std::int64_t rows, std::int64_t width, int warps, Body body) {
  Team team(warps);
  const Affine affine(body.weight, body.bias, team.column(), width);
  visit_rows(rows, team, body,
             [&](const RowsAtOnce& at, const auto& inputs) { body(at, team, affine, inputs); });
}

template <typename Body>
void for_each_norm_row(std::int64_t rows, std::int64_t width, const Body& body, CudaStream stream) {
  const int warps = warps_of(width), teams = kWarps / warps;
  const std::int64_t blocks = std::min(kNormBlocks, (rows + teams - 1) / teams);
  if (blocks > 0)
    each_norm_row<<<static_cast<unsigned>(blocks), kThreads, 0, stream.handle>>>(rows, width, warps, body);
}

// partial (blocks, 2, width): the sums of this block's rows, which body(rows, team, affine, inputs, first,
// second) adds to first and second.
template <typename Body>
__global__ void __launch_bounds__(kThreads, kTogether)
    each_norm_row_with_sums(std::int64_t rows, std::int64_t width, int warps, Body body, float* partial) {
  Team team(warps);
  const Affine affine(body.weight, body.bias, team.column(), width);
  float first[kGroup] = {}, second[kGroup] = {};
  visit_rows(rows, team, body, [&](const RowsAtOnce& at, const auto& inputs) {
    body(at, team, affine, inputs, first, second);
  });
  if (partial == nullptr) return;
  __shared__ float sums[2][kGroup][kThreads];  // the lanes' columns of all teams
#pragma unroll
  for (int i = 0; i < kGroup; ++i) sums[0][i][threadIdx.x] = first[i], sums[1][i][threadIdx.x] = second[i];
  __syncthreads();
  const int lanes = 32 * warps;
  for (int k = threadIdx.x; k < 2 * width; k += kThreads) {
    const int which = k < width ? 0 : 1, c = k - which * static_cast<int>(width);
    float sum = 0;
    for (int t = 0; t < team.count(); ++t) sum += sums[which][c % kGroup][t * lanes + c / kGroup];
    partial[blockIdx.x * 2 * width + k] = sum;
  }
}

template <typename Body>
void for_each_norm_row_with_sums(std::int64_t rows, std::int64_t width, const Body& body, Target<float> first,
                                 Target<float> second, CudaStream stream) {
  const int warps = warps_of(width);
  const bool wanted = first.to != nullptr || second.to != nullptr;
  const std::int64_t teams = kWarps / warps, blocks = std::min(kNormBlocks, (rows + teams - 1) / teams);
  const Scratch<float> partial(stream, wanted ? 2 * blocks * width : 0);
  if (blocks > 0) {
    each_norm_row_with_sums<<<static_cast<unsigned>(blocks), kThreads, 0, stream.handle>>>(
        rows, width, warps, body, wanted ? partial.data() : nullptr);
  }
  if (!wanted) return;
  add_partials(blocks, width, partial.data(), 2 * width, first, stream);
  add_partials(blocks, width, partial.data() + width, 2 * width, second, stream);
}

}  // namespace hstu::kernels::cuda
