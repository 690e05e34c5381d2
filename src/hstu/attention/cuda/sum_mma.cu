// O and dV: sums of rows weighted by silu of the scores. A step has two phases, each with the copies of the
// other's rows under way: scores against `other`, then weights times `other_value`.
#include "hstu/attention/cuda/launch.cuh"
#include "hstu/attention/cuda/mma_tile.cuh"

namespace hstu::cuda {
namespace {

template <int kD>
struct SumTile;
template <>
struct SumTile<64> : MmaTile<64, 2, 4, 64, 64> {};
template <>
struct SumTile<128> : MmaTile<128, 2, 4, 64, 32> {};
template <>
struct SumTile<256> : MmaTile<256, 1, 8, 32, 32> {};

template <typename Tile>
constexpr int kSumBytes = Tile::kOwnBytes + 2 * Tile::kBlockBytes;

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads) sum_mma_kernel(const __grid_constant__ MmaArguments a) {
  constexpr int kD = Tile::kD, kBlock = Tile::kBlock, kPart = Tile::kPart, kTiles = Tile::kTiles;
  constexpr int kWorkAt = kSumBytes<Tile>;
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
  const std::uint32_t own = shared_address(shared), other = own + Tile::kOwnBytes,
                      value = other + Tile::kBlockBytes;
  const auto load = [&](const AttentionRows& rows, std::uint32_t to, int step) {
    const int first = w.walk[step] * kBlock;
    load_rows<kBlock, kD, Tile::kThreads>(to, rows, w.begin + first, w.head, w.n - first, a.head_dim);
  };
  load_rows<Tile::kRows, kD, Tile::kThreads>(own, side.own, w.begin + w.own_begin, w.head, w.n - w.own_begin,
                                             a.head_dim);
  load(side.other, other, 0);
  float sum[kTiles][kD / 2] = {};
  const int steps = w.steps;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wait_for_copies();
    __syncthreads();
    load(side.other_value, value, step);
    const int first = w.walk[step] * kBlock;
    const bool some = sees_some(seen.any, first, first + kBlock);
    const bool whole = first >= seen.full_lo && first + kBlock <= seen.full_hi;
    std::uint32_t p[kTiles][kBlock / 4];
    if (some) {
#pragma unroll
      for (int part = 0; part < kBlock / kPart; ++part) {
        float s[kTiles][kPart / 2];
        multiply_rows<T, kD, kTiles, kPart>(s, lane_by_rows<kD>(own + warp * Tile::kWarpBytes),
                                            lane_by_pieces<kD>(other + part * (kPart * kD * 2)));
        if (!whole) mask_scores<kTiles, kPart>(s, a, side.of_keys, w, own_row, first + part * kPart);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
#pragma unroll
          for (int i = 0; i < kPart / 4; ++i) {
            const float x = s[m][2 * i] * a.half_alpha, y = s[m][2 * i + 1] * a.half_alpha;
            p[m][part * (kPart / 4) + i] = pack<T>(fmaf(x, fast_tanh(x), x), fmaf(y, fast_tanh(y), y));
          }
        }
      }
    }
    wait_for_copies();
    __syncthreads();
    if (step + 1 < steps) load(side.other, other, step + 1);
    if (some) add_weighted<T, kD, kTiles, kBlock>(sum, p, lane_by_rows<kD>(value));
  }
  store_sums<T, Tile>(sum, side.out, w, own_row, w.scale, a.head_dim);
}

}  // namespace

template <typename T, int kD>
void launch_sum_mma(const MmaArguments& arguments, std::int64_t items, int sides, cudaStream_t stream) {
  using Tile = SumTile<kD>;
  static_assert(Tile::kRows == sum_mma_rows(kD));
  launch_mma<Tile>(sum_mma_kernel<T, Tile>, arguments, items, sides, kSumBytes<Tile>, stream,
                   "attention, weighted sums");
}

template void launch_sum_mma<__nv_bfloat16, 64>(const MmaArguments&, std::int64_t, int, cudaStream_t);
template void launch_sum_mma<__nv_bfloat16, 128>(const MmaArguments&, std::int64_t, int, cudaStream_t);
template void launch_sum_mma<__nv_bfloat16, 256>(const MmaArguments&, std::int64_t, int, cudaStream_t);
template void launch_sum_mma<__half, 64>(const MmaArguments&, std::int64_t, int, cudaStream_t);
template void launch_sum_mma<__half, 128>(const MmaArguments&, std::int64_t, int, cudaStream_t);
template void launch_sum_mma<__half, 256>(const MmaArguments&, std::int64_t, int, cudaStream_t);

}  // namespace hstu::cuda
