// How the kernels of cuda/ divide their work, as far as it decides how much scratch memory they take:
// launchers and dry runs (dry.h) read the same numbers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hstu::kernels {

// A product (m, n) over k in tiles of C: k is cut into parts of a multiple of `step`, so that there are about
// `wanted` blocks; no part is shorter than `shortest`, and a k below `least_divided` is not cut.
struct ProductTiles {
  std::int64_t rows, columns, wanted, shortest, step, least_divided = 0;
};
inline constexpr ProductTiles kPlainTiles{64, 64, 256, 64, 32, 256};  // gemm.cu
inline constexpr ProductTiles kMmaTiles{128, 128, 264, 512, 32};      // gemm_mma.cu
// gemm_sm90.cu, which leaves products of fewer tiles and parts to gemm_mma.cu; a tile is that of two blocks.
constexpr ProductTiles hopper_tiles(std::int64_t multiprocessors) {
  return {256, 256, multiprocessors / 2, 512, 64};
}
inline constexpr std::int64_t kLeastHopperTiles = 12;

constexpr std::int64_t count_of_tiles(std::int64_t m, std::int64_t n, const ProductTiles& t) {
  return ((m + t.rows - 1) / t.rows) * ((n + t.columns - 1) / t.columns);
}

struct Parts {
  std::int64_t count, depth;
  // Of the sums of all parts, for a product whose parts have `rows` rows of `columns`.
  constexpr std::int64_t floats(std::int64_t rows, std::int64_t columns) const {
    return count > 1 ? count * rows * columns : 0;
  }
};
constexpr Parts parts_of(std::int64_t m, std::int64_t n, std::int64_t k, const ProductTiles& t) {
  if (k < t.least_divided) return {1, k};
  const std::int64_t tiles = count_of_tiles(m, n, t);
  const std::int64_t count = std::max<std::int64_t>(1, t.wanted / std::max<std::int64_t>(tiles, 1));
  const std::int64_t depth = std::max(t.shortest, ((k + count - 1) / count + t.step - 1) / t.step * t.step);
  return {std::max<std::int64_t>(1, (k + depth - 1) / depth), depth};
}
// The same of a product whose rows have the same bits whatever m is: k is one part.
constexpr Parts parts_of(std::int64_t m, std::int64_t n, std::int64_t k, const ProductTiles& t,
                         bool row_stable) {
  return row_stable ? Parts{1, k} : parts_of(m, n, k, t);
}
// On Hopper sums over tokens into fp32 (`sums`) alone are cut: where the tiles alone leave multiprocessors
// idle.
constexpr Parts hopper_parts(std::int64_t m, std::int64_t n, std::int64_t k, bool sums,
                             std::int64_t multiprocessors) {
  return sums ? parts_of(m, n, k, hopper_tiles(multiprocessors)) : Parts{1, k};
}

// Blocks of rows of which each leaves sums of two gradients of a norm (norm_rows.cuh).
inline constexpr std::int64_t kNormBlocksWithSums = 264;

// Strips of rows, of which sums of columns are made apart (column_sums.cuh).
constexpr std::int64_t rows_of_strip(std::int64_t rows) {
  constexpr std::int64_t kMostStrips = 512;
  return std::max<std::int64_t>(16, (rows + kMostStrips - 1) / kMostStrips);
}
constexpr std::int64_t count_of_strips(std::int64_t rows) {
  return (rows + rows_of_strip(rows) - 1) / rows_of_strip(rows);
}

// Tokens of a chunk: a thread waits for its tokens four at a time, and needs many others beside it
// (scatter_add.cu).
constexpr std::int64_t tokens_of_chunk(std::int64_t tokens) {
  return tokens < (std::int64_t{1} << 17) ? 16 : 64;
}
constexpr std::int64_t count_of_chunks(std::int64_t tokens) {
  return (tokens + tokens_of_chunk(tokens) - 1) / tokens_of_chunk(tokens);
}
// Keys and tokens, each before and after sorting, as numbers of 32 bits.
constexpr std::int64_t words_of_sorting(std::int64_t tokens) {
  return 4 * tokens;
}
// A chunk leaves sums of the row that comes in from the chunk before and of the row that goes on.
constexpr std::int64_t floats_of_chunks(std::int64_t tokens, std::int64_t width) {
  return 2 * count_of_chunks(tokens) * width;
}

// Positions of which a softmax over a catalogue has the logits of a block at a time, and the number of those
// logits (catalogue_softmax.cu).
inline constexpr std::int64_t kSoftmaxChunk = 4096;
constexpr std::int64_t softmax_logits(std::int64_t positions, std::int64_t items) {
  return std::min(kSoftmaxChunk, positions) * items;
}

}  // namespace hstu::kernels
