// dQ and dK: sums of rows weighted by the gradients of the scores. A step has two phases, each with the
// copies of the other's rows under way: gradients of the weights against `other_value`, then scores, their
// gradients and the sums with `other`.
#include "hstu/attention/cuda/launch.cuh"
#include "hstu/attention/cuda/mma_tile.cuh"

namespace hstu::cuda {
namespace {

template <int kD>
struct GradientTile;
template <>
struct GradientTile<64> : MmaTile<64, 2, 4, 64, 32> {};
template <>
struct GradientTile<128> : MmaTile<128, 2, 4, 32, 32> {};
template <>
struct GradientTile<256> : MmaTile<256, 1, 4, 32, 32> {};

// Twice the gradient of the score s with respect to which silu(2 half_alpha s) has the gradient dp, over 2
// half_alpha.
__device__ __forceinline__ float score_gradient(float s, float dp, float half_alpha) {
  const float x = s * half_alpha, h = fast_tanh(x);
  return dp * fmaf(x, fmaf(-h, h, 1.0f), 1.0f + h);
}

template <typename Tile>
constexpr int kGradientBytes = 2 * Tile::kOwnBytes + 2 * Tile::kBlockBytes;

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads)
    gradient_mma_kernel(const __grid_constant__ MmaArguments a) {
  constexpr int kD = Tile::kD, kBlock = Tile::kBlock, kPart = Tile::kPart, kTiles = Tile::kTiles;
  constexpr int kParts = kBlock / kPart, kWorkAt = kGradientBytes<Tile>;
  extern __shared__ __align__(128) char shared[];
  wait_for_previous_launch();
  let_next_launch_begin();
  if (static_cast<int>(blockIdx.x) >= a.schedule.counters[1]) return;
  const MmaSide& side = a.sides[blockIdx.y];
  MmaWork& work = *reinterpret_cast<MmaWork*>(shared + kWorkAt);
  plan_mma<Tile>(a, side, work);
  const Work& w = work.tile;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const Coverage& seen = work.warps[warp];
  const int own_row = w.own_begin + warp * 16 * kTiles + static_cast<int>(threadIdx.x) % 32 / 4;
  const std::uint32_t own = shared_address(shared), own_value = own + Tile::kOwnBytes,
                      other = own_value + Tile::kOwnBytes, value = other + Tile::kBlockBytes;
  const auto load_own = [&](const AttentionRows& rows, std::uint32_t to) {
    load_rows<Tile::kRows, kD, Tile::kThreads>(to, rows, w.begin + w.own_begin, w.head, w.n - w.own_begin,
                                               a.head_dim);
  };
  const auto load = [&](const AttentionRows& rows, std::uint32_t to, int step) {
    const int first = w.walk[step] * kBlock;
    load_rows<kBlock, kD, Tile::kThreads>(to, rows, w.begin + first, w.head, w.n - first, a.head_dim);
  };
  load_own(side.own, own);
  load_own(side.own_value, own_value);
  load(side.other_value, value, 0);
  float sum[kTiles][kD / 2] = {};
  const int steps = w.steps;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wait_for_copies();
    __syncthreads();
    load(side.other, other, step);
    const int first = w.walk[step] * kBlock;
    const bool some = sees_some(seen.any, first, first + kBlock);
    const bool whole = first >= seen.full_lo && first + kBlock <= seen.full_hi;
    float dp[kParts][kTiles][kPart / 2];
    if (some) {
#pragma unroll
      for (int part = 0; part < kParts; ++part)
        multiply_rows<T, kD, kTiles, kPart>(dp[part], lane_by_rows<kD>(own_value + warp * Tile::kWarpBytes),
                                            lane_by_pieces<kD>(value + part * (kPart * kD * 2)));
    }
    wait_for_copies();
    __syncthreads();
    if (step + 1 < steps) load(side.other_value, value, step + 1);
    if (some) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const std::uint32_t rows = other + part * (kPart * kD * 2);
        float s[kTiles][kPart / 2];
        multiply_rows<T, kD, kTiles, kPart>(s, lane_by_rows<kD>(own + warp * Tile::kWarpBytes),
                                            lane_by_pieces<kD>(rows));
        if (!whole) mask_scores<kTiles, kPart>(s, a, side.of_keys, w, own_row, first + part * kPart);
        std::uint32_t ds[kTiles][kPart / 4];
#pragma unroll
        for (int m = 0; m < kTiles; ++m)
#pragma unroll
          for (int i = 0; i < kPart / 4; ++i)
            ds[m][i] = pack<T>(score_gradient(s[m][2 * i], dp[part][m][2 * i], a.half_alpha),
                               score_gradient(s[m][2 * i + 1], dp[part][m][2 * i + 1], a.half_alpha));
        add_weighted<T, kD, kTiles, kPart>(sum, ds, lane_by_rows<kD>(rows));
      }
    }
  }
  store_sums<T, Tile>(sum, side.out, w, own_row, a.half_alpha * w.scale, a.head_dim);
}

}  // namespace

template <typename T, int kD>
void launch_gradient_mma(const MmaArguments& arguments, std::int64_t items, int sides, cudaStream_t stream) {
  using Tile = GradientTile<kD>;
  static_assert(Tile::kRows == gradient_mma_rows(kD));
  launch_mma<Tile>(gradient_mma_kernel<T, Tile>, arguments, items, sides, kGradientBytes<Tile>, stream,
                   "attention, gradients");
}

template void launch_gradient_mma<__nv_bfloat16, 64>(const MmaArguments&, std::int64_t, int, cudaStream_t);
template void launch_gradient_mma<__nv_bfloat16, 128>(const MmaArguments&, std::int64_t, int, cudaStream_t);
template void launch_gradient_mma<__nv_bfloat16, 256>(const MmaArguments&, std::int64_t, int, cudaStream_t);
template void launch_gradient_mma<__half, 64>(const MmaArguments&, std::int64_t, int, cudaStream_t);
template void launch_gradient_mma<__half, 128>(const MmaArguments&, std::int64_t, int, cudaStream_t);
template void launch_gradient_mma<__half, 256>(const MmaArguments&, std::int64_t, int, cudaStream_t);

}  // namespace hstu::cuda
