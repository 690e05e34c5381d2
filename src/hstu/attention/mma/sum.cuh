// O and dV: sums of rows weighted by silu of the scores.
#pragma once

#include "hstu/attention/mma/loop.cuh"

namespace hstu::cuda {

template <int kD>
struct SumTile;
template <>
struct SumTile<64> : MmaTile<64, 2, 4, 32, 2, 3> {};
template <>
struct SumTile<128> : MmaTile<128, 2, 4, 32, 2, 2> {};
template <>
struct SumTile<256> : MmaTile<256, 1, 8, 32, 1, 1> {};

template <typename T, int kD, typename Arguments_>
struct Sum {
  using Arguments = Arguments_;
  using Step = MmaStep<Arguments>;
  using Tile = SumTile<kD>;
  static constexpr int kSides = 1, kOwnRows = 1, kTiles = Tile::kTiles, kBlock = Tile::kBlock;
  static constexpr bool kValuesFirst = false, kSumsTables = false;
  struct Between {
    std::uint32_t p[kTiles][kBlock / 4];
  };
  float sum[kTiles][kD / 2] = {};

  __device__ __forceinline__ void first_phase(const Step& step, Between& between) {
    float s[kTiles][kBlock / 2];
    multiply_scores<T, Sum>(s, step, step.side.of_keys);
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int i = 0; i < kBlock / 4; ++i)
        between.p[m][i] = pack<T>(Activation(s[m][2 * i], score_factor(step)).value,
                                  Activation(s[m][2 * i + 1], score_factor(step)).value);
  }
  __device__ __forceinline__ void second_phase(const Step& step, const Between& between) {
    add_weighted<T, kD>(sum, between.p, lane_by_rows<kD>(step.stage), MmaLayout<Sum>::kOtherValueAt);
  }
  __device__ __forceinline__ void store(const MmaArguments& a, const MmaSide& side, const Work& w) const {
    store_sums<T, Tile>(sum, side.out, w, first_row<Tile>(w), w.scale, a.head_dim);
  }
};

template <typename T, int kD, typename Arguments>
void launch_sum_mma(const Arguments& arguments, std::int64_t items, cudaStream_t stream) {
  static_assert(SumTile<kD>::kRows == sum_mma_rows(kD));
  launch_mma<Sum<T, kD, Arguments>>(arguments, items, stream, "attention, weighted sums");
}

}  // namespace hstu::cuda
