// O of a softmax: sums of values by weights, as the blocks of keys arrive.
#pragma once

#include "hstu/attention/cuda/running_softmax.cuh"
#include "hstu/attention/mma/loop.cuh"

namespace hstu::cuda {

template <int kD>
struct SoftmaxSumTile;
template <>
struct SoftmaxSumTile<64> : MmaTile<64, 2, 4, 32, 2, 2> {};
template <>
struct SoftmaxSumTile<128> : MmaTile<128, 2, 4, 32, 2, 2> {};

template <typename T, int kD>
struct SoftmaxSum {
  using Arguments = SoftmaxMmaArguments;
  using Step = MmaStep<Arguments>;
  using Tile = SoftmaxSumTile<kD>;
  static constexpr int kSides = 1, kOwnRows = 1, kTiles = Tile::kTiles, kBlock = Tile::kBlock;
  static constexpr bool kValuesFirst = false, kSumsTables = false;
  struct Between {
    std::uint32_t p[kTiles][kBlock / 4];
  };
  float sum[kTiles][kD / 2] = {};
  RunningSoftmax rows[kTiles];

  __device__ __forceinline__ void first_phase(const Step& step, Between& between) {
    float s[kTiles][kBlock / 2];
    multiply_scores<T, SoftmaxSum>(s, step, false);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      rows[m].template weigh<kBlock, false>(s[m], step.a.exponent);
      rows[m].rescale(sum[m]);
#pragma unroll
      for (int i = 0; i < kBlock / 4; ++i) between.p[m][i] = pack<T>(s[m][2 * i], s[m][2 * i + 1]);
    }
  }
  __device__ __forceinline__ void second_phase(const Step& step, const Between& between) {
    add_weighted<T, kD>(sum, between.p, lane_by_rows<kD>(step.stage), MmaLayout<SoftmaxSum>::kOtherValueAt);
  }
  __device__ __forceinline__ void store(const Arguments& a, const MmaSide& side, const Work& w) {
    const int row = first_row<Tile>(w);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      const float2 logs = rows[m].divide(sum[m], w.scale, a.exponent);
      if (a.log_sums == nullptr || threadIdx.x % 4 != 0) continue;
      const int first = row + 16 * m;
      float* const to = a.log_sums + (w.begin + static_cast<std::int64_t>(first)) * a.samples.heads + w.head;
      if (first < w.own_end) to[0] = logs.x;
      if (first + 8 < w.own_end) to[8 * a.samples.heads] = logs.y;
    }
    store_sums<T, Tile>(sum, side.out, w, row, 1.0f, a.head_dim);
  }
};

template <typename T, int kD>
void launch_softmax_sum_mma(const SoftmaxMmaArguments& arguments, std::int64_t items, cudaStream_t stream) {
  static_assert(SoftmaxSumTile<kD>::kRows == kBackwardTile);
  launch_mma<SoftmaxSum<T, kD>>(arguments, items, stream, "softmax attention, sums by weights");
}

}  // namespace hstu::cuda
