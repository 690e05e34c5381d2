// dQ, and dK if a thread has no registers for the sums of dV beside it: sums of rows weighted by the
// gradients of the scores.
#pragma once

#include "hstu/attention/mma/loop.cuh"

namespace hstu::cuda {

template <int kD, bool kBiased>
struct GradientTile;
template <>
struct GradientTile<64, false> : MmaTile<64, 2, 4, 32, 2, 3> {};
template <>
struct GradientTile<128, false> : MmaTile<128, 2, 4, 32, 1, 2> {};
template <>
struct GradientTile<256, false> : MmaTile<256, 1, 4, 32, 1, 2> {};
template <>
struct GradientTile<64, true> : MmaTile<64, 1, 4, 32, 2, 3> {};
template <>
struct GradientTile<128, true> : MmaTile<128, 1, 4, 32, 1, 2> {};
template <>
struct GradientTile<256, true> : MmaTile<256, 1, 2, 32, 1, 2> {};

template <typename T, int kD, typename Arguments_>
struct Gradient {
  using Arguments = Arguments_;
  using Step = MmaStep<Arguments>;
  using Tile = GradientTile<kD, kHasBias<Arguments>>;
  // Blocks alternate between tiles of dK and dQ, so that the longest samples of both come first.
  static constexpr int kSides = kD == 256 ? 2 : 1;
  static constexpr int kOwnRows = 2, kTiles = Tile::kTiles, kBlock = Tile::kBlock;
  static constexpr bool kValuesFirst = true, kSumsTables = kHasBias<Arguments>;
  struct Between {
    float dp[kTiles][kBlock / 2];
  };
  float sum[kTiles][kD / 2] = {};

  // With two stages the scores come first, so that the product of the values runs beside their activation.
  __device__ __forceinline__ void first_phase(const Step& step, Between& between) {
    if constexpr (Tile::kStages == 1) multiply_values(step, between.dp);
  }
  __device__ __forceinline__ void second_phase(const Step& step, Between& between) {
    float(&dp)[kTiles][kBlock / 2] = between.dp, slope[kTiles][kBlock / 2];
    multiply_scores<T, Gradient>(slope, step, step.side.of_keys);
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int i = 0; i < kBlock / 2; ++i) slope[m][i] = Activation(slope[m][i], score_factor(step)).slope;
    if constexpr (Tile::kStages == 2) multiply_values(step, dp);
    if constexpr (kSumsTables) sum_tables(step, slope, dp);
    std::uint32_t ds[kTiles][kBlock / 4];
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int i = 0; i < kBlock / 4; ++i)
        ds[m][i] = pack<T>(slope[m][2 * i] * dp[m][2 * i], slope[m][2 * i + 1] * dp[m][2 * i + 1]);
    add_weighted<T, kD>(sum, ds, lane_by_rows<kD>(step.stage), MmaLayout<Gradient>::kOtherAt);
  }
  __device__ __forceinline__ void store(const Arguments& a, const MmaSide& side, const Work& w) const {
    if constexpr (kSumsTables) {
      if (!side.of_keys)
        TableGradients<kBlock, false>::finish({a.bias, w.head, w.begin, w.n, 0, 0}, 0.5f * w.scale, memory());
    }
    store_sums<T, Tile>(sum, side.out, w, first_row<Tile>(w), a.half_alpha * w.scale, a.head_dim);
  }

  static __device__ __forceinline__ GradientMemory<kBlock>& memory() {
    extern __shared__ __align__(128) char shared[];
    return reinterpret_cast<GradientMemory<kBlock>*>(shared +
                                                     MmaLayout<Gradient>::kMemoryAt)[threadIdx.x / 32];
  }
  // Gradients of the tables, where own rows are queries: a pair counts once.
  static __device__ __forceinline__ void sum_tables(const Step& step,
                                                    const float (&slope)[kTiles][kBlock / 2],
                                                    const float (&dp)[kTiles][kBlock / 2]) {
    if (step.side.of_keys) return;
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      float ds[kBlock / 2];
#pragma unroll
      for (int i = 0; i < kBlock / 2; ++i) ds[i] = slope[m][i] * dp[m][i];
      const ScoreTile<false> tile = score_tile<Tile, false>(step, m);
      TableGradients<kBlock, false>::add(ds, tile, WarpBuckets<kBlock, false>(tile), 0.5f * step.w.scale,
                                         memory());
    }
  }
  static __device__ __forceinline__ void multiply_values(const Step& step, float (&dp)[kTiles][kBlock / 2]) {
    using At = MmaLayout<Gradient>;
    multiply_rows<T, kD>(dp, step.own, At::kOwnValueAt, lane_by_pieces<kD>(step.stage), At::kOtherValueAt);
  }
};

template <typename T, int kD, typename Arguments>
void launch_gradient_mma(const Arguments& arguments, std::int64_t items, cudaStream_t stream) {
  static_assert(Gradient<T, kD, Arguments>::Tile::kRows == gradient_mma_rows(kD, kHasBias<Arguments>));
  launch_mma<Gradient<T, kD, Arguments>>(arguments, items, stream,
                                         "attention backward, gradients of one side");
}

}  // namespace hstu::cuda
