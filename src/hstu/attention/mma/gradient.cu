// dQ, and dK if a thread has no registers for the sums of dV beside it: sums of rows weighted by the
// gradients of the scores.
#include "hstu/attention/mma/loop.cuh"

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

template <typename T, int kD>
struct Gradient {
  using Tile = GradientTile<kD>;
  // Blocks alternate between tiles of dK and dQ, so that the longest samples of both come first.
  static constexpr int kSides = kD == 256 ? 2 : 1;
  static constexpr int kOwnRows = 2, kTiles = Tile::kTiles, kBlock = Tile::kBlock;
  static constexpr bool kValuesFirst = true;
  struct Between {
    float dp[kTiles][kBlock / 2];
  };
  float sum[kTiles][kD / 2] = {};

  // With two stages the scores come first, so that the product of the values runs beside their activation.
  __device__ __forceinline__ void first_phase(const MmaStep& step, Between& between) {
    if constexpr (Tile::kStages == 1) multiply_values(step, between.dp);
  }
  __device__ __forceinline__ void second_phase(const MmaStep& step, Between& between) {
    float(&dp)[kTiles][kBlock / 2] = between.dp, slope[kTiles][kBlock / 2];
    multiply_scores<T, Gradient>(slope, step, step.side.of_keys);
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int i = 0; i < kBlock / 2; ++i) slope[m][i] = Activation(slope[m][i], step.a.half_alpha).slope;
    if constexpr (Tile::kStages == 2) multiply_values(step, dp);
    std::uint32_t ds[kTiles][kBlock / 4];
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int i = 0; i < kBlock / 4; ++i)
        ds[m][i] = pack<T>(slope[m][2 * i] * dp[m][2 * i], slope[m][2 * i + 1] * dp[m][2 * i + 1]);
    add_weighted<T, kD>(sum, ds, lane_by_rows<kD>(step.stage), MmaLayout<Gradient>::kOtherAt);
  }
  __device__ __forceinline__ void store(const MmaArguments& a, const MmaSide& side, const Work& w) const {
    store_sums<T, Tile>(sum, side.out, w, first_row<Tile>(w), a.half_alpha * w.scale, a.head_dim);
  }

  static __device__ __forceinline__ void multiply_values(const MmaStep& step,
                                                         float (&dp)[kTiles][kBlock / 2]) {
    using At = MmaLayout<Gradient>;
    multiply_rows<T, kD>(dp, step.own, At::kOwnValueAt, lane_by_pieces<kD>(step.stage), At::kOtherValueAt);
  }
};

}  // namespace

template <typename T, int kD>
void launch_gradient_mma(const MmaArguments& arguments, std::int64_t items, cudaStream_t stream) {
  static_assert(GradientTile<kD>::kRows == gradient_mma_rows(kD));
  launch_mma<Gradient<T, kD>>(arguments, items, stream, "attention backward, gradients of one side");
}

template void launch_gradient_mma<__nv_bfloat16, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__nv_bfloat16, 128>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__nv_bfloat16, 256>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__half, 64>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__half, 128>(const MmaArguments&, std::int64_t, cudaStream_t);
template void launch_gradient_mma<__half, 256>(const MmaArguments&, std::int64_t, cudaStream_t);

}  // namespace hstu::cuda
