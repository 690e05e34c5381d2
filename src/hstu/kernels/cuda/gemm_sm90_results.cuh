// What becomes of the sums of a tile: results in bf16 with their activation or slope, or sums in fp32.
#pragma once

#include "hstu/device/cuda/mma.cuh"
#include "hstu/device/cuda/wgmma.cuh"
#include "hstu/kernels/cuda/gelu.cuh"
#include "hstu/kernels/cuda/gemm_sm90_tile.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels::cuda::sm90 {

// 64 x 256 sums of a group, element by element as wgmma leaves them: of pair (j, half), columns 8 j + 2 (lane
// % 4) and the next, row 16 (warp) + lane / 4 + 8 half.
using Sums = float[kColumns / 2];

// Results in bf16 on their way through shared memory, 16 rows of a warp by 64 columns at a time, in two
// buffers by turns. Where their activation is stored too, it takes the turn after them: it is computed while
// they leave. No warp waits for another.
class StagedResults {
 public:
  __device__ StagedResults(const Shared& shared, int group)
      : shared_(shared), group_(group), thread_(threadIdx.x % kGroupThreads), lane_(thread_ % 32) {}

  // The line of a box that stmatrix and ldmatrix take from this thread, and the place of 16 columns in it.
  __device__ std::uint32_t offset(int pair) const {
    const int row = thread_ / 32 * 16 + lane_ % 16;
    return row * 128 + (((2 * pair + lane_ / 16) ^ (row & 7)) << 4);
  }
  __device__ void begin() const {  // waits until the buffer of this turn is free
    if (lane_ == 0) wait_for_store_reads<1>();
    __syncwarp();
  }
  __device__ void put(int pair, const std::uint32_t* packed) const {
    store_matrices(buffer() + offset(pair), packed[0], packed[1], packed[2], packed[3]);
  }
  // Stores the buffer as a box; `row` is the group's first.
  __device__ void end(const CUtensorMap& map, int column, int row) {
    fence_async_proxy();
    __syncwarp();
    const int first = thread_ / 32 * kWarpRows;
    if (lane_ == 0) store_matrix_box(&map, column, row + first, buffer() + first * 128), commit_stores();
    turn_ ^= 1;
  }

 private:
  __device__ std::uint32_t buffer() const { return shared_.staged(group_, turn_); }

  const Shared& shared_;
  int group_, thread_, lane_, turn_ = 0;
};

// What kernels do to bf16 results: nothing, or silu beside them; relu or gelu in their place; gelu beside
// them; in a backward pass a slope, of a mask, which comes as what is added does. Apart from each other, so
// that a product without it has no instruction for it.
enum class Then { nothing, relu, relu_slope, gelu, gelu_beside, gelu_slope };

template <Then then>
__device__ void store(const Arguments<Element>& p, const Sums& sums, int row0, int column0,
                      const Shared& shared, int group, Turn& turn, StagedResults& staged) {
  const int lane = threadIdx.x % 32;
  const float* const bias = p.epilogue.bias;
#pragma unroll
  for (int slice = 0; slice < kColumns / kBox; ++slice) {
    const int column = column0 + slice * kBox;
    const std::uint32_t added = shared.a(turn.stage) + slice % 2 * (kAddedBytes / 2) + group * kBoxBytes;
    if (p.adds && slice % 2 == 0) barrier_wait(shared.full(turn.stage), turn.parity);
    float2 biases[kBox / 8];  // of columns 8 i + 2 (lane % 4) and the next; on their way while this waits
    if (bias != nullptr) {
#pragma unroll
      for (int i = 0; i < kBox / 8; ++i) {
        const int at = min(column + i * 8, static_cast<int>(p.e.n) - 8) + lane % 4 * 2;
        biases[i] = *reinterpret_cast<const float2*>(bias + at);
      }
    }
    staged.begin();
    std::uint32_t packed[kBox / 16][4];
#pragma unroll
    for (int pair = 0; pair < kBox / 16; ++pair) {
      float x[8];  // of i: row 8 (i / 2 % 2), column 8 (i / 4) + i % 2
#pragma unroll
      for (int i = 0; i < 8; ++i) x[i] = sums[slice * 32 + pair * 8 + i];
      if (bias != nullptr) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float2 two = biases[2 * pair + i];
          x[4 * i] += two.x, x[4 * i + 1] += two.y, x[4 * i + 2] += two.x, x[4 * i + 3] += two.y;
        }
      }
      std::uint32_t beside[4];
      if (p.adds) {
        std::uint32_t r[4];
        load_matrices(r, added + staged.offset(pair));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 two = unpack<Element>(r[i]);
          if constexpr (then == Then::relu_slope) {
            x[2 * i] *= relu_slope(two.x), x[2 * i + 1] *= relu_slope(two.y);
          } else if constexpr (then == Then::gelu_slope) {
            const GeluAndSlope gelu = fast_gelu_and_slope(two);
            x[2 * i] *= gelu.slope.x, x[2 * i + 1] *= gelu.slope.y;
            beside[i] = pack<Element>(gelu.value.x, gelu.value.y);
          } else {
            x[2 * i] += two.x, x[2 * i + 1] += two.y;
          }
        }
      }
      if constexpr (then == Then::relu) {
#pragma unroll
        for (float& y : x) y = relu_of(y);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float2 y{x[2 * i], x[2 * i + 1]};
        if constexpr (then == Then::gelu) y = fast_gelu(y);
        packed[pair][i] = pack<Element>(y.x, y.y);
      }
      staged.put(pair, packed[pair]);
      if constexpr (then == Then::gelu_slope) {
#pragma unroll
        for (int i = 0; i < 4; ++i) packed[pair][i] = beside[i];
      }
    }
    if (p.adds && slice % 2 == 1) {
      release(shared, turn.stage);
      turn.next();
    }
    staged.end(p.c, column, row0);
    if (p.activated_from < 0 || column < p.activated_from) continue;
    staged.begin();
#pragma unroll
    for (int pair = 0; pair < kBox / 16; ++pair) {
      if constexpr (then != Then::gelu_slope) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // of the rounded results, which the backward pass reads
          const float2 z = unpack<Element>(packed[pair][i]),
                       y = then == Then::gelu_beside ? fast_gelu(z) : fast_silu(z);
          packed[pair][i] = pack<Element>(y.x, y.y);
        }
      }
      staged.put(pair, packed[pair]);
    }
    staged.end(p.activated, column - p.activated_from, row0);
  }
}

// Results in fp32, and the sums of a part, are stored directly: four threads fill a sector. What results are
// added to is read sixteen pairs at a time, without a branch between them: each would wait for memory.
__device__ inline void store(const Arguments<float>& p, const Sums& sums, int row0, int column0, int part) {
  constexpr int kAtOnce = 16;
  const bool is_part = p.parts != nullptr, adds = !is_part && p.epilogue.beta != 0;
  float* const to = is_part ? p.parts + part * p.e.m * p.e.n : p.epilogue.c;
  const std::int64_t stride = is_part ? p.e.n : p.epilogue.stride;
  const int thread = threadIdx.x % kGroupThreads;
  const std::int64_t row = row0 + thread / 32 * 16 + thread % 32 / 4, column = column0 + thread % 4 * 2;
#pragma unroll
  for (int first = 0; first < kColumns / 4; first += kAtOnce) {
    float2 before[kAtOnce] = {};
    if (adds) {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const std::int64_t r = min(row + k % 2 * 8, p.e.m - 1),
                           c = min(column + (first + k) / 2 * 8, p.e.n - 2);
        before[k] = *reinterpret_cast<const float2*>(to + r * stride + c);
      }
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const std::int64_t r = row + k % 2 * 8, c = column + (first + k) / 2 * 8;
      if (r < p.e.m && c < p.e.n)
        *reinterpret_cast<float2*>(to + r * stride + c) = {sums[2 * (first + k)] + before[k].x,
                                                           sums[2 * (first + k) + 1] + before[k].y};
    }
  }
}

}  // namespace hstu::kernels::cuda::sm90
