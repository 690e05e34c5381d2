// dK and dV together, if a thread has registers for the sums of both: the scores and their gradients are
// computed once.
#include "hstu/attention/mma/tile.cuh"

namespace hstu::cuda {
namespace {

template <int kD>
struct KeyTile;
template <>
struct KeyTile<64> : MmaTile<64, 1, 4, 32, 2, 3> {};
template <>
struct KeyTile<128> : MmaTile<128, 1, 8, 32, 2, 1> {};

template <typename Tile>
constexpr int kKeyBytes = 2 * Tile::kOwnBytes + Tile::kStages* Tile::kStageBytes;

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    key_gradient_mma_kernel(const __grid_constant__ MmaArguments a) {
  constexpr int kD = Tile::kD, kBlock = Tile::kBlock, kTiles = Tile::kTiles, kWorkAt = kKeyBytes<Tile>;
  constexpr int kValueAt = Tile::kOwnBytes, kQueryAt = 2 * Tile::kOwnBytes,
                kOutputAt = kQueryAt + Tile::kBlockBytes;
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
  load_own<Tile>(base + kValueAt, side.own_value, w, a.head_dim);
  load_block<Tile>(base + kQueryAt, side.other, w, 0, a.head_dim);
  load_block<Tile>(base + kOutputAt, side.other_value, w, 0, a.head_dim);
  float key_sum[kTiles][kD / 2] = {}, value_sum[kTiles][kD / 2] = {};
#pragma unroll 1
  for (int step = 0; step < w.steps; ++step) {
    const std::uint32_t stage = base + step % 2 * Tile::kStageBytes;
    const std::uint32_t next = 2 * base + Tile::kStageBytes - stage;
    wait_for_copies();
    __syncthreads();
    if (step + 1 < w.steps) {
      load_block<Tile>(next + kQueryAt, side.other, w, step + 1, a.head_dim);
      load_block<Tile>(next + kOutputAt, side.other_value, w, step + 1, a.head_dim);
    }
    const int first = w.walk[step] * kBlock;
    if (!sees_some(seen.any, first, first + kBlock)) continue;
    float s[kTiles][kBlock / 2], dp[kTiles][kBlock / 2];
    std::uint32_t packed[kTiles][kBlock / 4];
    multiply_rows<T, kD>(s, own_lane, 0, lane_by_pieces<kD>(stage), kQueryAt);
    if (first < seen.full_lo || first + kBlock > seen.full_hi)
      mask_scores(s, a, true, w, first_row<Tile>(w), first);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int i = 0; i < kBlock / 4; ++i) {
        const Activation x(s[m][2 * i], a.half_alpha), y(s[m][2 * i + 1], a.half_alpha);
        packed[m][i] = pack<T>(x.value, y.value);
        s[m][2 * i] = x.slope, s[m][2 * i + 1] = y.slope;
      }
    }
    add_weighted<T, kD>(value_sum, packed, lane_by_rows<kD>(stage), kOutputAt);
    multiply_rows<T, kD>(dp, own_lane, kValueAt, lane_by_pieces<kD>(stage), kOutputAt);
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int i = 0; i < kBlock / 4; ++i)
        packed[m][i] = pack<T>(s[m][2 * i] * dp[m][2 * i], s[m][2 * i + 1] * dp[m][2 * i + 1]);
    add_weighted<T, kD>(key_sum, packed, lane_by_rows<kD>(stage), kQueryAt);
  }
  store_sums<T, Tile>(key_sum, side.out, w, first_row<Tile>(w), a.half_alpha * w.scale, a.head_dim);
  store_sums<T, Tile>(value_sum, side.out_value, w, first_row<Tile>(w), w.scale, a.head_dim);
}

}  // namespace

template <typename T, int kD>
void launch_key_gradient_mma(const MmaArguments& arguments, std::int64_t items, cudaStream_t stream) {
  using Tile = KeyTile<kD>;
  static_assert(Tile::kRows == key_gradient_mma_rows(kD));
  launch_mma<Tile, kKeyBytes<Tile>>(key_gradient_mma_kernel<T, Tile>, arguments, items, stream,
                                    "attention backward, dK and dV");
}

template void launch_key_gradient_mma<__nv_bfloat16, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_key_gradient_mma<__nv_bfloat16, 128>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_key_gradient_mma<__half, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_key_gradient_mma<__half, 128>(const MmaArguments&, std::int64_t, cudaStream_t);

}  // namespace hstu::cuda
