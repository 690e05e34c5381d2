// Rows of a normalisation in registers: a team of warps computes a row, and a lane has eight neighbouring
// elements of it. Sums over rows for each column stay in registers too, and are added in a fixed order.
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

  // The sums over all lanes, in every lane.
  __device__ float2 sum(float2 x) {
    x = {warp_sum(x.x), warp_sum(x.y)};
    if (warps_ == 1) return x;
    __shared__ float2 sums[2][kWarps];  // by turns, so that one barrier is enough
    const int first = index() * warps_;
    if (lane() == 0) sums[turn_][threadIdx.x / 32] = x;
    hstu::cuda::named_barrier(1 + index(), 32 * warps_);
    x = sums[turn_][first];
    for (int w = 1; w < warps_; ++w) x.x += sums[turn_][first + w].x, x.y += sums[turn_][first + w].y;
    turn_ ^= 1;
    return x;
  }

 private:
  int warps_, turn_ = 0;
};

struct RowStatistics {
  float mean, rstd;
};

// Of a row of `width`, of which this lane has x, zero beyond the row. In two passes.
__device__ inline RowStatistics row_statistics(const float (&x)[kGroup], std::int64_t width, float epsilon,
                                               Team& team) {
  float sum = 0, squares = 0;
#pragma unroll
  for (int i = 0; i < kGroup; ++i) sum += x[i];
  const float mean = team.sum({sum, 0}).x / static_cast<float>(width);
#pragma unroll
  for (int i = 0; i < kGroup; ++i) {
    const float d = team.column() + i < width ? x[i] - mean : 0.0f;
    squares += d * d;
  }
  return {mean, rsqrtf(team.sum({squares, 0}).x / static_cast<float>(width) + epsilon)};
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
// body(row, team, affine, inputs) computes it. The next Body::kAhead rows are loaded before, so that loads
// and arithmetic overlap.
template <typename Body, typename Compute>
__device__ void visit_rows(std::int64_t rows, const Team& team, const Body& body, const Compute& compute) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * team.count(), c = team.column();
  std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * team.count() + team.index();
  if (r >= rows) return;
  decltype(body.load(r, c)) next[Body::kAhead];
#pragma unroll
  for (int i = 0; i < Body::kAhead; ++i) {
    if (r + i * step < rows) next[i] = body.load(r + i * step, c);
  }
  for (; r < rows; r += step) {
    const auto inputs = next[0];
#pragma unroll
    for (int i = 0; i + 1 < Body::kAhead; ++i) next[i] = next[i + 1];
    if (r + Body::kAhead * step < rows) next[Body::kAhead - 1] = body.load(r + Body::kAhead * step, c);
    compute(r, inputs);
  }
}

// Blocks on a multiprocessor at a time, and on a GPU of 132 multiprocessors: constants, so that sums are the
// same on every GPU.
inline constexpr int kTogether = 3, kTogetherWithSums = 2;
inline constexpr std::int64_t kNormBlocks = 132 * kTogether, kNormBlocksWithSums = 132 * kTogetherWithSums;

template <typename Body>
__global__ void __launch_bounds__(kThreads, kTogether)
    each_norm_row(std::int64_t rows, std::int64_t width, int warps, Body body) {
  Team team(warps);
  const Affine affine(body.weight, body.bias, team.column(), width);
  visit_rows(rows, team, body, [&](std::int64_t r, const auto& inputs) { body(r, team, affine, inputs); });
}

template <typename Body>
void for_each_norm_row(std::int64_t rows, std::int64_t width, const Body& body, CudaStream stream) {
  const int warps = warps_of(width), teams = kWarps / warps;
  const std::int64_t blocks = std::min(kNormBlocks, (rows + teams - 1) / teams);
  if (blocks > 0)
    each_norm_row<<<static_cast<unsigned>(blocks), kThreads, 0, stream.handle>>>(rows, width, warps, body);
}

// partial (blocks, 2, width): the sums of this block's rows, which body(row, team, affine, inputs, first,
// second) adds to first and second.
template <typename Body>
__global__ void __launch_bounds__(kThreads, kTogetherWithSums)
    each_norm_row_with_sums(std::int64_t rows, std::int64_t width, int warps, Body body, float* partial) {
  Team team(warps);
  const Affine affine(body.weight, body.bias, team.column(), width);
  float first[kGroup] = {}, second[kGroup] = {};
  visit_rows(rows, team, body,
             [&](std::int64_t r, const auto& inputs) { body(r, team, affine, inputs, first, second); });
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
  const std::int64_t teams = kWarps / warps,
                     blocks = std::min(kNormBlocksWithSums, (rows + teams - 1) / teams);
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
