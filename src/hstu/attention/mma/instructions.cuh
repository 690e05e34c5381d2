// The two products of attention on mma.sync: rows times rows over the head, and weights times rows.
#pragma once

#include <cstdint>
#include <type_traits>

#include "hstu/attention/problem.h"
#include "hstu/device/cuda/mma.cuh"
#include "hstu/device/cuda/ptx.cuh"

namespace hstu::cuda {

// ---- rows of kD elements in shared memory
//
// Piece c (16 bytes) of row r is at place c ^ (r % 8), so that the same piece of eight rows, which ldmatrix
// reads at once, is in different banks. Rows begin at multiples of 128 bytes.

// Copies kRows rows of one head from `first` on. Rows from `there` on and columns beyond the head's size
// become zeros, because the memory there may contain NaN.
template <int kRows, int kD, int kThreads>
__device__ __forceinline__ void load_rows(std::uint32_t to, const AttentionInput& rows, std::int64_t first,
                                          int head, int there, int head_dim) {
  constexpr int kPieces = kD / 8, kStep = kThreads / kPieces;
  static_assert(kThreads % kPieces == 0 && kRows % kStep == 0);
  const int piece = static_cast<int>(threadIdx.x) % kPieces, row = static_cast<int>(threadIdx.x) / kPieces;
  const std::int64_t step = kStep * 2 * rows.row_stride;
  const char* from = static_cast<const char*>(rows.data) +
                     2 * ((first + row) * rows.row_stride + head * rows.head_stride + piece * 8);
  if (piece * 8 >= head_dim) there = 0;
#pragma unroll
  for (int r = 0; r < kRows; r += kStep) {
    const bool inside = row + r < there;
    copy_or_zero(to + (row + r) * (kD * 2) + ((piece ^ ((row + r) & 7)) * 16), inside ? from : rows.data,
                 inside ? 16 : 0);
    from += step;
  }
}

// The address that this lane gives for pieces 0 and 1 of 16 rows: piece l / 16 of row l % 16 (the left
// operand, and the right one transposed) ...
template <int kD>
__device__ __forceinline__ std::uint32_t lane_by_rows(std::uint32_t rows) {
  const std::uint32_t lane = threadIdx.x % 32;
  return rows + lane % 16 * (kD * 2) + (lane / 16 ^ lane % 8) * 16;
}
// ... or piece l / 8 % 2 of row l % 8 + l / 16 * 8 (the right operand).
template <int kD>
__device__ __forceinline__ std::uint32_t lane_by_pieces(std::uint32_t rows) {
  const std::uint32_t lane = threadIdx.x % 32;
  return rows + (lane % 8 + lane / 16 * 8) * (kD * 2) + (lane / 8 % 2 ^ lane % 8) * 16;
}
// The same for the pieces 2 i and 2 i + 1. Buffers add compile-time constants to it, so that four registers
// serve them all.
__device__ __forceinline__ std::uint32_t at_pieces(std::uint32_t lane_address, int i) {
  return (lane_address ^ (i % 4 * 32)) + i / 4 * 128;
}

// Accumulators of kTiles x 16 rows and N columns: element 4 j + 2 hf + e of tile m is row
// 16 m + lane / 4 + 8 hf, column 8 j + 2 (lane % 4) + e.

// s = own rows times the transpose of kN other rows. The own rows are `own_at` bytes after `own`
// (lane_by_rows), the others `other_at` bytes after `other` (lane_by_pieces).
template <typename T, int kD, int kTiles, int kHalf>
__device__ __forceinline__ void multiply_rows(float (&s)[kTiles][kHalf], std::uint32_t own, int own_at,
                                              std::uint32_t other, int other_at) {
  constexpr int kN = 2 * kHalf;
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
#pragma unroll
    for (int i = 0; i < kHalf; ++i) s[m][i] = 0;
#pragma unroll
  for (int k = 0; k < kD / 16; ++k) {
    std::uint32_t a[kTiles][4];
#pragma unroll
    for (int m = 0; m < kTiles; ++m) load_matrices(a[m], at_pieces(own, k) + (own_at + m * (16 * kD * 2)));
#pragma unroll
    for (int j = 0; j < kN / 16; ++j) {
      std::uint32_t b[4];
      load_matrices(b, at_pieces(other, k) + (other_at + j * (16 * kD * 2)));
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        multiply_add<T>(s[m] + 8 * j, a[m], b[0], b[1]);
        multiply_add<T>(s[m] + 8 * j + 4, a[m], b[2], b[3]);
      }
    }
  }
}

// sum += weights times other rows, which are `other_at` bytes after `other` (lane_by_rows). `weights` are
// packed accumulators: the instruction takes its left operand in that form.
template <typename T, int kD, int kTiles, int kQuarter>
__device__ __forceinline__ void add_weighted(float (&sum)[kTiles][kD / 2],
                                             const std::uint32_t (&weights)[kTiles][kQuarter],
                                             std::uint32_t other, int other_at) {
#pragma unroll
  for (int k = 0; k < kQuarter / 4; ++k) {
#pragma unroll
    for (int j = 0; j < kD / 16; ++j) {
      std::uint32_t b[4];
      load_transposed(b, at_pieces(other, j) + (other_at + k * (16 * kD * 2)));
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        multiply_add<T>(sum[m] + 8 * j, weights[m] + 4 * k, b[0], b[1]);
        multiply_add<T>(sum[m] + 8 * j + 4, weights[m] + 4 * k, b[2], b[3]);
      }
    }
  }
}

}  // namespace hstu::cuda
