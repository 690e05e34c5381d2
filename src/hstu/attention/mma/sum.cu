// O and dV: sums of rows weighted by silu of the scores.
#include "hstu/attention/mma/tile.cuh"

namespace hstu::cuda {
namespace {

template <int kD>
struct SumTile;
template <>
struct SumTile<64> : MmaTile<64, 2, 4, 32, 2, 3> {};
template <>
struct SumTile<128> : MmaTile<128, 2, 4, 32, 2, 2> {};
template <>
struct SumTile<256> : MmaTile<256, 1, 8, 32, 1, 1> {};

template <typename Tile>
constexpr int kSumBytes = Tile::kOwnBytes + Tile::kStages* Tile::kStageBytes;

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    sum_mma_kernel(const __grid_constant__ MmaArguments a) {
  constexpr int kD = Tile::kD, kBlock = Tile::kBlock, kTiles = Tile::kTiles, kWorkAt = kSumBytes<Tile>;
  constexpr int kOtherAt = Tile::kOwnBytes, kValueAt = kOtherAt + Tile::kBlockBytes;
  constexpr bool kTwo = Tile::kStages == 2;
  extern __shared__ __align__(128) char shared[];
  wait_for_previous_launch();
  let_next_launch_begin();
  const int item = static_cast<int>(blockIdx.x);
  if (item >= a.schedule.counters[1]) return;
  const MmaSide& side = a.sides[0];
  MmaWork& work = *reinterpret_cast<MmaWork*>(shared + kWorkAt);
  plan_mma<Tile>(a, side, item, work);
  const Work& w = work.tile;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const Coverage& seen = work.warps[warp];
  const std::uint32_t base = shared_address(shared);
  const std::uint32_t own_lane = lane_by_rows<kD>(base + warp * Tile::kWarpBytes);
  load_own<Tile>(base, side.own, w, a.head_dim);
  load_block<Tile>(base + kOtherAt, side.other, w, 0, a.head_dim);
  if constexpr (kTwo) load_block<Tile>(base + kValueAt, side.other_value, w, 0, a.head_dim);
  float sum[kTiles][kD / 2] = {};
#pragma unroll 1
  for (int step = 0; step < w.steps; ++step) {
    const std::uint32_t stage = base + (kTwo ? step % 2 * Tile::kStageBytes : 0);
    const std::uint32_t next = kTwo ? 2 * base + Tile::kStageBytes - stage : base;
    wait_for_copies();
    __syncthreads();
    if constexpr (!kTwo) {
      load_block<Tile>(base + kValueAt, side.other_value, w, step, a.head_dim);
    } else if (step + 1 < w.steps) {
      load_block<Tile>(next + kOtherAt, side.other, w, step + 1, a.head_dim);
      load_block<Tile>(next + kValueAt, side.other_value, w, step + 1, a.head_dim);
    }
    const int first = w.walk[step] * kBlock;
    const bool some = sees_some(seen.any, first, first + kBlock);
    std::uint32_t p[kTiles][kBlock / 4];
    if (some) {
      float s[kTiles][kBlock / 2];
      multiply_rows<T, kD>(s, own_lane, 0, lane_by_pieces<kD>(stage), kOtherAt);
      if (first < seen.full_lo || first + kBlock > seen.full_hi)
        mask_scores(s, a, side.of_keys, w, first_row<Tile>(w), first);
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int i = 0; i < kBlock / 4; ++i)
          p[m][i] = pack<T>(Activation(s[m][2 * i], a.half_alpha).value,
                            Activation(s[m][2 * i + 1], a.half_alpha).value);
    }
    if constexpr (!kTwo) {
      wait_for_copies();
      __syncthreads();
      if (step + 1 < w.steps) load_block<Tile>(base + kOtherAt, side.other, w, step + 1, a.head_dim);
    }
    if (some) add_weighted<T, kD>(sum, p, lane_by_rows<kD>(stage), kValueAt);
  }
  store_sums<T, Tile>(sum, side.out, w, first_row<Tile>(w), w.scale, a.head_dim);
}

}  // namespace

template <typename T, int kD>
void launch_sum_mma(const MmaArguments& arguments, std::int64_t items, cudaStream_t stream) {
  using Tile = SumTile<kD>;
  static_assert(Tile::kRows == sum_mma_rows(kD));
  launch_mma<Tile, kSumBytes<Tile>>(sum_mma_kernel<T, Tile>, arguments, items, stream,
                                    "attention, weighted sums");
}

template void launch_sum_mma<__nv_bfloat16, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_sum_mma<__nv_bfloat16, 128>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_sum_mma<__nv_bfloat16, 256>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_sum_mma<__half, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_sum_mma<__half, 128>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_sum_mma<__half, 256>(const MmaArguments&, std::int64_t, cudaStream_t);

}  // namespace hstu::cuda
