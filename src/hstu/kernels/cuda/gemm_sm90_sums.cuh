// The sums of the right factor's columns, by warps that would wait otherwise: the factor is in shared memory
// for the product.
#pragma once

#include "hstu/device/cuda/mma.cuh"
#include "hstu/kernels/cuda/gemm_sm90_tile.cuh"

namespace hstu::kernels::cuda::sm90 {

inline constexpr int kSumWarps = 2;

// A warp has the 64 columns of one box, kSumWarps of the four of a tile in each block of the cluster. A lane
// has eight columns of every fourth row. It takes longer than the product of a stage: the clusters with the
// same columns take turns, and each leaves the sums of its own stages.
__device__ inline void add_columns(const Arguments<float>& p, const Shared& shared, int warp) {
  constexpr int kChunks = kBox / 8, kPhases = 32 / kChunks;  // of 16 bytes; rows at a time
  constexpr int kAtOnce = 4;                                 // loads under way
  const int lane = threadIdx.x % 32, chunk = lane % kChunks, phase = lane / kChunks;
  const int box = static_cast<int>(cluster_rank()) * kSumWarps + warp;
  Turn turn;
  for (int index = blockIdx.x / kCluster; index < p.tiles; index += gridDim.x / kCluster) {
    const Tile tile = tile_of(p, index);
    const int pair = tile.row / kPairRows;
    float sum[8] = {};
    for (int step = 0; step < tile.steps; ++step, turn.next()) {
      barrier_wait_idle(shared.full(turn.stage), turn.parity);
      const std::uint32_t rows = shared.b(turn.stage) + box * kBoxBytes;
      for (int first = phase; first < (step % p.row_pairs == pair ? kDepth : 0); first += kAtOnce * kPhases) {
        uint4 eight[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int k = first + i * kPhases;
          eight[i] = load_shared_quad(rows + k * 128 + ((chunk ^ (k & 7)) << 4));
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const std::uint32_t pairs[4] = {eight[i].x, eight[i].y, eight[i].z, eight[i].w};
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const float2 two = unpack<Element>(pairs[j]);
            sum[2 * j] += two.x, sum[2 * j + 1] += two.y;
          }
        }
      }
      __syncwarp();
      release(shared, turn.stage);
    }
    float* const part = p.column_parts + (std::int64_t{tile.part} * p.row_pairs + pair) * p.e.n;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      for (int step = kChunks; step < 32; step *= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], step);
      const std::int64_t column = tile.column + box * kBox + chunk * 8 + i;
      if (phase == 0 && column < p.e.n) part[column] = sum[i];
    }
  }
}

}  // namespace hstu::kernels::cuda::sm90
