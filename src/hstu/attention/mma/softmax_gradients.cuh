// dK and dV, and dQ, of a softmax: the weights are computed again from the statistics of the queries.
#pragma once

#include "hstu/attention/cuda/running_softmax.cuh"
#include "hstu/attention/mma/loop.cuh"

namespace hstu::cuda {

template <int kD>
struct SoftmaxKeyTile;
template <>
struct SoftmaxKeyTile<64> : MmaTile<64, 1, 8, 32, 2, 1> {};
template <>
struct SoftmaxKeyTile<128> : MmaTile<128, 1, 8, 32, 2, 1> {};

template <int kD>
struct SoftmaxQueryTile;
template <>
struct SoftmaxQueryTile<64> : MmaTile<64, 2, 4, 32, 2, 2> {};
template <>
struct SoftmaxQueryTile<128> : MmaTile<128, 2, 4, 32, 1, 2> {};

// The statistics of query `row` of the head, and of those after it.
__device__ __forceinline__ const float* statistics_of(const SoftmaxMmaArguments& a, const Work& w, int row) {
  return a.statistics + statistics_place(w.first, row / kStatisticsRows) + row % kStatisticsRows;
}

template <typename T, int kD>
struct SoftmaxKeyGradient {
  using Arguments = SoftmaxMmaArguments;
  using Step = MmaStep<Arguments>;
  using Tile = SoftmaxKeyTile<kD>;
  static constexpr int kSides = 1, kOwnRows = 2, kTiles = Tile::kTiles, kBlock = Tile::kBlock;
  static constexpr bool kValuesFirst = false, kSumsTables = false;
  static_assert(kStatisticsRows % kBlock == 0);
  struct Between {
    float weight[kTiles][kBlock / 2];
  };
  float key_sum[kTiles][kD / 2] = {}, value_sum[kTiles][kD / 2] = {};

  // Of columns 8 j + 2 (lane % 4) and the next of the step.
  static __device__ __forceinline__ float2 of_columns(const Step& step, int j, int offset) {
    const float* const from =
        statistics_of(step.a, step.w, step.column) + 8 * j + threadIdx.x % 4 * 2 + offset;
    return __ldg(reinterpret_cast<const float2*>(from));
  }
  __device__ __forceinline__ void first_phase(const Step& step, Between& between) {
    float(&s)[kTiles][kBlock / 2] = between.weight;
    std::uint32_t p[kTiles][kBlock / 4];
    multiply_scores<T, SoftmaxKeyGradient>(s, step, true);
#pragma unroll
    for (int j = 0; j < kBlock / 8; ++j) {
      const float2 log_sum = of_columns(step, j, 0);
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int i = 4 * j; i < 4 * j + 4; i += 2) {
          s[m][i] = fast_exp2(fmaf(s[m][i], step.a.exponent, -log_sum.x));
          s[m][i + 1] = fast_exp2(fmaf(s[m][i + 1], step.a.exponent, -log_sum.y));
          p[m][i / 2] = pack<T>(s[m][i], s[m][i + 1]);
        }
      }
    }
    add_weighted<T, kD>(value_sum, p, lane_by_rows<kD>(step.stage),
                        MmaLayout<SoftmaxKeyGradient>::kOtherValueAt);
  }
  __device__ __forceinline__ void second_phase(const Step& step, const Between& between) {
    using At = MmaLayout<SoftmaxKeyGradient>;
    float dp[kTiles][kBlock / 2];
    std::uint32_t ds[kTiles][kBlock / 4];
    multiply_rows<T, kD>(dp, step.own, At::kOwnValueAt, lane_by_pieces<kD>(step.stage), At::kOtherValueAt);
#pragma unroll
    for (int j = 0; j < kBlock / 8; ++j) {
      const float2 mean = of_columns(step, j, kStatisticsRows);
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int i = 4 * j; i < 4 * j + 4; i += 2)
          ds[m][i / 2] = pack<T>(between.weight[m][i] * (dp[m][i] - mean.x),
                                 between.weight[m][i + 1] * (dp[m][i + 1] - mean.y));
    }
    add_weighted<T, kD>(key_sum, ds, lane_by_rows<kD>(step.stage), At::kOtherAt);
  }
  __device__ __forceinline__ void store(const MmaArguments& a, const MmaSide& side, const Work& w) const {
    store_sums<T, Tile>(key_sum, side.out, w, first_row<Tile>(w), a.half_alpha * w.scale, a.head_dim);
    store_sums<T, Tile>(value_sum, side.out_value, w, first_row<Tile>(w), w.scale, a.head_dim);
  }
};

template <typename T, int kD>
struct SoftmaxGradient {
  using Arguments = SoftmaxMmaArguments;
  using Step = MmaStep<Arguments>;
  using Tile = SoftmaxQueryTile<kD>;
  static constexpr int kSides = 1, kOwnRows = 2, kTiles = Tile::kTiles, kBlock = Tile::kBlock;
  static constexpr bool kValuesFirst = true, kSumsTables = false;
  struct Between {
    float dp[kTiles][kBlock / 2];
  };
  float sum[kTiles][kD / 2] = {};

  __device__ __forceinline__ void first_phase(const Step& step, Between& between) {
    using At = MmaLayout<SoftmaxGradient>;
    multiply_rows<T, kD>(between.dp, step.own, At::kOwnValueAt, lane_by_pieces<kD>(step.stage),
                         At::kOtherValueAt);
  }
  __device__ __forceinline__ void second_phase(const Step& step, Between& between) {
    float s[kTiles][kBlock / 2];
    std::uint32_t ds[kTiles][kBlock / 4];
    multiply_scores<T, SoftmaxGradient>(s, step, false);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      const float* const own = statistics_of(step.a, step.w, first_row<Tile>(step.w) + 16 * m);
      const float log_sum[2] = {__ldg(own), __ldg(own + 8)},
                  mean[2] = {__ldg(own + kStatisticsRows), __ldg(own + kStatisticsRows + 8)};
#pragma unroll
      for (int i = 0; i < kBlock / 2; i += 2) {
        const auto slope = [&](int x) {
          return fast_exp2(fmaf(s[m][x], step.a.exponent, -log_sum[i / 2 % 2])) *
                 (between.dp[m][x] - mean[i / 2 % 2]);
        };
        ds[m][i / 2] = pack<T>(slope(i), slope(i + 1));
      }
    }
    add_weighted<T, kD>(sum, ds, lane_by_rows<kD>(step.stage), MmaLayout<SoftmaxGradient>::kOtherAt);
  }
  __device__ __forceinline__ void store(const MmaArguments& a, const MmaSide& side, const Work& w) const {
    store_sums<T, Tile>(sum, side.out, w, first_row<Tile>(w), a.half_alpha * w.scale, a.head_dim);
  }
};

template <typename T, int kD>
void launch_softmax_key_gradient_mma(const SoftmaxMmaArguments& arguments, std::int64_t items,
                                     cudaStream_t stream) {
  static_assert(SoftmaxKeyTile<kD>::kRows == kBackwardTile);
  launch_mma<SoftmaxKeyGradient<T, kD>>(arguments, items, stream, "softmax attention backward, dK and dV");
}
template <typename T, int kD>
void launch_softmax_gradient_mma(const SoftmaxMmaArguments& arguments, std::int64_t items,
                                 cudaStream_t stream) {
  static_assert(SoftmaxQueryTile<kD>::kRows == kBackwardTile);
  launch_mma<SoftmaxGradient<T, kD>>(arguments, items, stream, "softmax attention backward, dQ");
}

}  // namespace hstu::cuda
