// dK and dV together, if a thread has registers for the sums of both: the scores and their gradients are
// computed once.
#pragma once

#include "hstu/attention/mma/loop.cuh"

namespace hstu::cuda {

template <int kD>
struct KeyTile;
template <>
struct KeyTile<64> : MmaTile<64, 1, 4, 32, 2, 3> {};
template <>
struct KeyTile<128> : MmaTile<128, 1, 8, 32, 2, 1> {};

template <typename T, int kD, typename Arguments_>
struct KeyGradient {
  using Arguments = Arguments_;
  using Step = MmaStep<Arguments>;
  using Tile = KeyTile<kD>;
  static constexpr int kSides = 1, kOwnRows = 2, kTiles = Tile::kTiles, kBlock = Tile::kBlock;
  static constexpr bool kValuesFirst = false, kSumsTables = false;
  struct Between {
    float slope[kTiles][kBlock / 2];
  };
  float key_sum[kTiles][kD / 2] = {}, value_sum[kTiles][kD / 2] = {};

  __device__ __forceinline__ void first_phase(const Step& step, Between& between) {
    float(&s)[kTiles][kBlock / 2] = between.slope;
    std::uint32_t p[kTiles][kBlock / 4];
    multiply_scores<T, KeyGradient>(s, step, true);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int i = 0; i < kBlock / 4; ++i) {
        const Activation x(s[m][2 * i], score_factor(step)), y(s[m][2 * i + 1], score_factor(step));
        p[m][i] = pack<T>(x.value, y.value);
        s[m][2 * i] = x.slope, s[m][2 * i + 1] = y.slope;
      }
    }
    add_weighted<T, kD>(value_sum, p, lane_by_rows<kD>(step.stage), MmaLayout<KeyGradient>::kOtherValueAt);
  }
  __device__ __forceinline__ void second_phase(const Step& step, const Between& between) {
    using At = MmaLayout<KeyGradient>;
    float dp[kTiles][kBlock / 2];
    std::uint32_t ds[kTiles][kBlock / 4];
    multiply_rows<T, kD>(dp, step.own, At::kOwnValueAt, lane_by_pieces<kD>(step.stage), At::kOtherValueAt);
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int i = 0; i < kBlock / 4; ++i)
        ds[m][i] =
            pack<T>(between.slope[m][2 * i] * dp[m][2 * i], between.slope[m][2 * i + 1] * dp[m][2 * i + 1]);
    add_weighted<T, kD>(key_sum, ds, lane_by_rows<kD>(step.stage), At::kOtherAt);
  }
  __device__ __forceinline__ void store(const MmaArguments& a, const MmaSide& side, const Work& w) const {
    store_sums<T, Tile>(key_sum, side.out, w, first_row<Tile>(w), a.half_alpha * w.scale, a.head_dim);
    store_sums<T, Tile>(value_sum, side.out_value, w, first_row<Tile>(w), w.scale, a.head_dim);
  }
};

template <typename T, int kD, typename Arguments>
void launch_key_gradient_mma(const Arguments& arguments, std::int64_t items, cudaStream_t stream) {
  static_assert(KeyTile<kD>::kRows == key_gradient_mma_rows(kD));
  launch_mma<KeyGradient<T, kD, Arguments>>(arguments, items, stream, "attention backward, dK and dV");
}

}  // namespace hstu::cuda
