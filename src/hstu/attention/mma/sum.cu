// O and dV: sums of rows weighted by silu of the scores.
#include "hstu/attention/mma/loop.cuh"

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

template <typename T, int kD>
struct Sum {
  using Tile = SumTile<kD>;
  static constexpr int kSides = 1, kOwnRows = 1, kTiles = Tile::kTiles, kBlock = Tile::kBlock;
  static constexpr bool kValuesFirst = false;
  struct Between {
    std::uint32_t p[kTiles][kBlock / 4];
  };
  float sum[kTiles][kD / 2] = {};

  __device__ __forceinline__ void first_phase(const MmaStep& step, Between& between) {
    float s[kTiles][kBlock / 2];
    multiply_scores<T, Sum>(s, step, step.side.of_keys);
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int i = 0; i < kBlock / 4; ++i)
        between.p[m][i] = pack<T>(Activation(s[m][2 * i], step.a.half_alpha).value,
                                  Activation(s[m][2 * i + 1], step.a.half_alpha).value);
  }
  __device__ __forceinline__ void second_phase(const MmaStep& step, const Between& between) {
    add_weighted<T, kD>(sum, between.p, lane_by_rows<kD>(step.stage), MmaLayout<Sum>::kOtherValueAt);
  }
  __device__ __forceinline__ void store(const MmaArguments& a, const MmaSide& side, const Work& w) const {
    store_sums<T, Tile>(sum, side.out, w, first_row<Tile>(w), w.scale, a.head_dim);
  }
};

}  // namespace

template <typename T, int kD>
void launch_sum_mma(const MmaArguments& arguments, std::int64_t items, cudaStream_t stream) {
  static_assert(SumTile<kD>::kRows == sum_mma_rows(kD));
  launch_mma<Sum<T, kD>>(arguments, items, stream, "attention, weighted sums");
}

template void launch_sum_mma<__nv_bfloat16, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_sum_mma<__nv_bfloat16, 128>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_sum_mma<__nv_bfloat16, 256>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_sum_mma<__half, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_sum_mma<__half, 128>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_sum_mma<__half, 256>(const MmaArguments&, std::int64_t, cudaStream_t);

}  // namespace hstu::cuda
