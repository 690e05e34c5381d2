// Rows of a normalisation in registers: a team of warps computes a row, and a lane has eight neighbouring
// elements of it. Sums over rows for each column stay in registers too, and are added in a fixed order.
#pragma once

#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/ptx.cuh"
#include "hstu/kernels/cuda/dropout.cuh"
#include "hstu/kernels/cuda/part_sums.cuh"
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/scratch_sizes.h"

namespace hstu::kernels::cuda {

inline constexpr std::int64_t kWidestRow = kWarps * kWarpColumns;

// The warps of a block that share a row. kWhole: rows fill all their lanes, and every group of eight elements
// is at a multiple of 16 bytes.
template <bool kWhole>
class Team {
 public:
  __device__ Team(int warps, int width) : warps_(warps), width_(width) {
    __shared__ float sums[2][2][kWarps];  // by turns; of x, of y; of the block's warps
    const int half = threadIdx.x % 32 / 16;
    own_sum_ = hstu::cuda::shared_address(&sums[0][half][threadIdx.x / 32]);
    other_sum_ = hstu::cuda::shared_address(&sums[0][half][index() * warps + threadIdx.x % kWarps]);
  }

  __device__ int index() const { return threadIdx.x / (32 * warps_); }
  __device__ int count() const { return kWarps / warps_; }  // in a block
  // The first of this lane's columns.
  __device__ int column() const { return threadIdx.x % (32 * warps_) * static_cast<int>(kGroup); }
  // Of a row, in columns.
  __device__ int width() const { return kWhole ? warps_ * static_cast<int>(kWarpColumns) : width_; }
  __device__ float inverse_width() const { return 1.0f / static_cast<float>(width()); }

  // The sums over all lanes, in every lane. After one exchange, half of the lanes add up x, half y.
  __device__ float2 sum(float2 pair) {
    const bool is_x = threadIdx.x % 32 < 16;
    float sum = is_x ? pair.x : pair.y;
    sum += __shfl_xor_sync(0xffffffffu, is_x ? pair.y : pair.x, 16);
    sum = warp_sum<8>(sum);
    if (warps_ > 1) {
      if (threadIdx.x % 16 == 0) hstu::cuda::store_shared(own_sum_ + turn_, __float_as_uint(sum));
      hstu::cuda::named_barrier(1 + index(), 32 * warps_);
      // One reading and three exchanges for any number of warps.
      sum = 0;
      if (static_cast<int>(threadIdx.x % kWarps) < warps_)
        sum = __uint_as_float(hstu::cuda::load_shared(other_sum_ + turn_));
      sum = warp_sum<kWarps / 2>(sum);
      turn_ ^= 2 * kWarps * sizeof(float);  // so that one barrier is enough
    }
    const float other = __shfl_xor_sync(0xffffffffu, sum, 16);
    return is_x ? float2{sum, other} : float2{other, sum};
  }

 private:
  int warps_, width_;
  std::uint32_t own_sum_, other_sum_, turn_ = 0;  // addresses in shared memory, and their offset
};

struct RowStatistics {
  float mean, rstd;
};

// x, an element of a row of N, normalised. Where N has 16 bits, the rounding of mean times rstd is far below
// that of x.
template <typename N>
__device__ float normalised(float x, const RowStatistics& s) {
  return sizeof(N) == 2 ? fmaf(x, s.rstd, -s.mean * s.rstd) : (x - s.mean) * s.rstd;
}

// Of a row of N of which this lane has x, zero beyond the row. In two passes; in one if N has 16 bits: the
// squares of such numbers are exact in float, and the rounding of their sum is far below that of the numbers.
template <typename N, bool kWhole>
__device__ RowStatistics row_statistics(const float (&x)[kGroup], float epsilon, Team<kWhole>& team) {
  float sum = 0, squares = 0;
#pragma unroll
  for (int i = 0; i < kGroup; ++i) sum += x[i];
  if constexpr (sizeof(N) == 2) {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) squares += x[i] * x[i];
    const float2 sums = team.sum({sum, squares});
    const float mean = sums.x * team.inverse_width();
    const float variance = fmaxf(0, sums.y * team.inverse_width() - mean * mean);
    return {mean, rsqrtf(variance + epsilon)};
  } else {
    const float mean = team.sum({sum, 0}).x * team.inverse_width();
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float d = team.column() + i < team.width() ? x[i] - mean : 0.0f;
      squares += d * d;
    }
    return {mean, rsqrtf(team.sum({squares, 0}).x * team.inverse_width() + epsilon)};
  }
}

// Rows and strides in 32 bits: the place of a row is then one multiplication.
inline std::uint32_t narrow(std::int64_t rows_or_stride) {
  require(rows_or_stride < (std::int64_t{1} << 31), "a norm of {} rows or columns is too large for a GPU",
          rows_or_stride);
  return static_cast<std::uint32_t>(rows_or_stride);
}
__device__ inline std::int64_t row_at(std::uint32_t row, std::uint32_t stride) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(row) * stride);
}

// Whether rows of this width fill all lanes of a team, and weight and bias, where a norm has them, can be
// read 16 bytes at a time.
inline bool fills_warps(std::int64_t width, const float* weight = nullptr, const float* bias = nullptr) {
  return width > 0 && width % kWarpColumns == 0 && kWidestRow % width == 0 &&
         is_whole(weight, width, width) && is_whole(bias, width, width);
}

inline int warps_of(std::int64_t width) {
  require(width <= kWidestRow, "a norm of {} elements is too wide for a GPU: at most {}", width, kWidestRow);
  int warps = 1;
  while (warps * kWarpColumns < width) warps *= 2;
  return warps;
}

// A lane's part of the norm's weight, and of its bias if it has one.
struct Affine {
  float weight[kGroup], bias[kGroup];

  template <typename Body, bool kWhole>
  __device__ Affine(const Body& body, const Team<kWhole>& team) {
    load_group<kWhole>(body.weight, team.column(), team.width(), weight);
    if constexpr (requires { body.bias; }) load_group<kWhole>(body.bias, team.column(), team.width(), bias);
  }
};

// What the kernels below call: inputs = body.load(row, team) reads what a lane needs of a row, and
// body(row, team, affine, inputs) computes it. The next Body::kAhead rows are loaded before, so that loads
// and arithmetic overlap. Body::kWhole is its team's. inputs.key, if there is one, becomes that of
// body.dropout. Rows are visited from the last to the first: products and attention go the other way, so what
// the launch before wrote last is still in the L2 cache, and what these kernels write last is read first.
template <typename Body, typename Compute>
__device__ void visit_rows(std::uint32_t rows, const Team<Body::kWhole>& team, const Body& body,
                           const Compute& compute) {
  const std::uint32_t step = gridDim.x * team.count();
  std::uint32_t r = rows - 1 - (blockIdx.x * team.count() + team.index());
  if (r >= rows) return;  // below 0
  RowKeys keys(rows, step);
  const auto load = [&](std::uint32_t row) {
    auto inputs = body.load(row, team);
    if constexpr (requires { inputs.key; }) inputs.key = keys.next(body.dropout, row);
    return inputs;
  };
  decltype(load(r)) next[Body::kAhead];
#pragma unroll
  for (int i = 0; i < Body::kAhead; ++i) {
    if (r - i * step < rows) next[i] = load(r - i * step);
  }
  for (; r < rows; r -= step) {
    const auto inputs = next[0];
#pragma unroll
    for (int i = 0; i + 1 < Body::kAhead; ++i) next[i] = next[i + 1];
    if (r - Body::kAhead * step < rows) next[Body::kAhead - 1] = load(r - Body::kAhead * step);
    compute(r, inputs);
  }
}

// Blocks on a multiprocessor at a time, and on a GPU of 132 multiprocessors: constants, so that sums are the
// same on every GPU.
inline constexpr int kTogether = 3, kTogetherWithSums = 2;
inline constexpr std::int64_t kNormBlocks = 132 * kTogether;
static_assert(kNormBlocksWithSums == 132 * kTogetherWithSums);

// A norm without a weight has a body without one, and is called without `affine`.
template <typename Body>
__global__ void __launch_bounds__(kThreads, kTogether)
    each_norm_row(std::uint32_t rows, int width, int warps, Body body) {
  Team<Body::kWhole> team(warps, width);
  hstu::cuda::let_next_launch_begin();  // all blocks are there; a product reads its weight meanwhile
  hstu::cuda::wait_for_previous_launch();
  if constexpr (requires { body.weight; }) {
    const Affine affine(body, team);
    visit_rows(rows, team, body, [&](std::uint32_t r, const auto& inputs) { body(r, team, affine, inputs); });
  } else {
    visit_rows(rows, team, body, [&](std::uint32_t r, const auto& inputs) { body(r, team, inputs); });
  }
}

template <typename Body>
void for_each_norm_row(std::int64_t rows, std::int64_t width, const Body& body, CudaStream stream) {
  const int warps = warps_of(width), teams = kWarps / warps;
  const std::int64_t blocks = std::min(kNormBlocks, (rows + teams - 1) / teams);
  if (blocks > 0)
    hstu::cuda::launch("norm", each_norm_row<Body>, static_cast<unsigned>(blocks), kThreads, stream.handle,
                       narrow(rows), static_cast<int>(width), warps, body);
}

// partial (blocks, 2, width): the sums of this block's rows, which body(row, team, affine, inputs, first,
// second) adds to first and second.
template <typename Body>
__global__ void __launch_bounds__(kThreads, kTogetherWithSums)
    each_norm_row_with_sums(std::uint32_t rows, int width, int warps, Body body, float* partial) {
  Team<Body::kWhole> team(warps, width);
  hstu::cuda::wait_for_previous_launch();
  const Affine affine(body, team);
  float first[kGroup] = {}, second[kGroup] = {};
  visit_rows(rows, team, body,
             [&](std::uint32_t r, const auto& inputs) { body(r, team, affine, inputs, first, second); });
  if (partial == nullptr) return;
  __shared__ float sums[2][kGroup][kThreads];  // the lanes' columns of all teams
#pragma unroll
  for (int i = 0; i < kGroup; ++i) sums[0][i][threadIdx.x] = first[i], sums[1][i][threadIdx.x] = second[i];
  __syncthreads();
  const int lanes = 32 * warps;
  for (int k = threadIdx.x; k < 2 * width; k += kThreads) {
    const int which = k < width ? 0 : 1, c = k - which * width;
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
  Scratch<float> partial(stream, wanted ? 2 * blocks * width : 0);
  if (blocks > 0) {
    hstu::cuda::launch("norm, backward", each_norm_row_with_sums<Body>, static_cast<unsigned>(blocks),
                       kThreads, stream.handle, narrow(rows), static_cast<int>(width), warps, body,
                       wanted ? partial.data() : nullptr);
  }
  if (!wanted) return;
  const PartSum sums[] = {sum_of(partial.data(), blocks, 2 * width, width, first),
                          sum_of(partial.data() + width, blocks, 2 * width, width, second)};
  add_parts(sums, std::move(partial), stream);
}

}  // namespace hstu::kernels::cuda
