// dQ, and dK if a thread has no registers for the sums of dV beside it: sums of rows weighted by the
// gradients of the scores.
#include "hstu/attention/mma/tile.cuh"

namespace hstu::cuda {
namespace {

template <int kD>
struct GradientTile;
template <>
struct GradientTile<64> : MmaTile<64, 2, 4, 32, 2, 3> {};
template <>
struct GradientTile<128> : MmaTile<128, 2, 4, 32, 1, 2> {};
template <>
struct GradientTile<256> : MmaTile<256, 1, 4, 32, 1, 2> {};

// Blocks alternate between tiles of dK and dQ, so that the longest samples of both come first.
template <typename Tile>
constexpr int kSides = Tile::kD == 256 ? 2 : 1;
template <typename Tile>
constexpr int kGradientBytes = 2 * Tile::kOwnBytes + Tile::kStages* Tile::kStageBytes;

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    gradient_mma_kernel(const __grid_constant__ MmaArguments a) {
  constexpr int kD = Tile::kD, kBlock = Tile::kBlock, kTiles = Tile::kTiles, kWorkAt = kGradientBytes<Tile>;
  constexpr int kOwnValueAt = Tile::kOwnBytes, kValueAt = 2 * Tile::kOwnBytes,
                kOtherAt = kValueAt + Tile::kBlockBytes;
  constexpr bool kTwo = Tile::kStages == 2;
  extern __shared__ __align__(128) char shared[];
  wait_for_previous_launch();
  let_next_launch_begin();
  const int item = static_cast<int>(blockIdx.x) / kSides<Tile>;
  if (item >= a.schedule.counters[1]) return;
  const MmaSide& side = a.sides[blockIdx.x % kSides<Tile>];
  MmaWork& work = *reinterpret_cast<MmaWork*>(shared + kWorkAt);
  plan_mma<Tile>(a, side, item, work);
  const Work& w = work.tile;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const Coverage& seen = work.warps[warp];
  const std::uint32_t base = shared_address(shared);
  const std::uint32_t own_lane = lane_by_rows<kD>(base + warp * Tile::kWarpBytes);
  load_own<Tile>(base, side.own, w, a.head_dim);
  load_own<Tile>(base + kOwnValueAt, side.own_value, w, a.head_dim);
  load_block<Tile>(base + kValueAt, side.other_value, w, 0, a.head_dim);
  if constexpr (kTwo) load_block<Tile>(base + kOtherAt, side.other, w, 0, a.head_dim);
  float sum[kTiles][kD / 2] = {};
#pragma unroll 1
  for (int step = 0; step < w.steps; ++step) {
    const std::uint32_t stage = base + (kTwo ? step % 2 * Tile::kStageBytes : 0);
    const std::uint32_t next = kTwo ? 2 * base + Tile::kStageBytes - stage : base;
    wait_for_copies();
    __syncthreads();
    if constexpr (!kTwo) {
      load_block<Tile>(base + kOtherAt, side.other, w, step, a.head_dim);
    } else if (step + 1 < w.steps) {
      load_block<Tile>(next + kValueAt, side.other_value, w, step + 1, a.head_dim);
      load_block<Tile>(next + kOtherAt, side.other, w, step + 1, a.head_dim);
    }
    const int first = w.walk[step] * kBlock;
    const bool some = sees_some(seen.any, first, first + kBlock);
    const std::uint32_t lane = lane_by_pieces<kD>(stage);
    float dp[kTiles][kBlock / 2], slope[kTiles][kBlock / 2];
    const auto multiply_values = [&] { multiply_rows<T, kD>(dp, own_lane, kOwnValueAt, lane, kValueAt); };
    const auto multiply_scores = [&] {
      multiply_rows<T, kD>(slope, own_lane, 0, lane, kOtherAt);
      if (first < seen.full_lo || first + kBlock > seen.full_hi)
        mask_scores(slope, a, side.of_keys, w, first_row<Tile>(w), first);
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int i = 0; i < kBlock / 2; ++i) slope[m][i] = Activation(slope[m][i], a.half_alpha).slope;
    };
    if constexpr (kTwo) {
      if (!some) continue;
      multiply_scores();
      multiply_values();
    } else {
      if (some) multiply_values();
      wait_for_copies();
      __syncthreads();
      if (step + 1 < w.steps) load_block<Tile>(base + kValueAt, side.other_value, w, step + 1, a.head_dim);
      if (!some) continue;
      multiply_scores();
    }
    std::uint32_t ds[kTiles][kBlock / 4];
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int i = 0; i < kBlock / 4; ++i)
        ds[m][i] = pack<T>(slope[m][2 * i] * dp[m][2 * i], slope[m][2 * i + 1] * dp[m][2 * i + 1]);
    add_weighted<T, kD>(sum, ds, lane_by_rows<kD>(stage), kOtherAt);
  }
  store_sums<T, Tile>(sum, side.out, w, first_row<Tile>(w), a.half_alpha * w.scale, a.head_dim);
}

}  // namespace

template <typename T, int kD>
void launch_gradient_mma(const MmaArguments& arguments, std::int64_t items, cudaStream_t stream) {
  using Tile = GradientTile<kD>;
  static_assert(Tile::kRows == gradient_mma_rows(kD));
  launch_mma<Tile, kGradientBytes<Tile>>(gradient_mma_kernel<T, Tile>, arguments, items * kSides<Tile>,
                                         stream, "attention backward, gradients of one side");
}

template void launch_gradient_mma<__nv_bfloat16, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__nv_bfloat16, 128>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__nv_bfloat16, 256>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__half, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__half, 128>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__half, 256>(const MmaArguments&, std::int64_t, cudaStream_t);

}  // namespace hstu::cuda
