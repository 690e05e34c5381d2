// Sizes that the kernels of small MLPs and their dry run share.
#pragma once

#include <numeric>

#include "hstu/kernels/mlp.h"

namespace hstu::kernels {

inline constexpr std::int64_t kMlpRows = 8;  // of a block
inline constexpr std::int64_t kMostMlpBytes =
    99 * 1024;  // shared memory of a block on every GPU since Ampere

inline std::int64_t mlp_blocks(const MlpShape& s) {
  return (s.rows + kMlpRows - 1) / kMlpRows;
}
// Of the parameters: a block of the backward pass has a sum for each element.
inline std::array<std::int64_t, kMlpParameters> mlp_sizes(const MlpShape& s) {
  const std::int64_t norm = s.is_normalised ? s.out : 0;
  return {s.in * s.hidden, s.hidden, s.hidden, s.hidden, s.hidden * s.out, s.out, norm, norm};
}
// Of all of them, rounded up so that the sums of each block begin at a multiple of 16 bytes.
inline std::int64_t mlp_elements(const MlpShape& s) {
  const auto sizes = mlp_sizes(s);
  return (std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) + 3) / 4 * 4;
}
// A width, rounded up to whole copies of 16 bytes.
inline std::int64_t mlp_padded(std::int64_t width) {
  return (width + 3) / 4 * 4;
}
// From one row of a block to the next: an odd number of 16 bytes, so that rows begin in different banks.
inline std::int64_t mlp_stride(std::int64_t width) {
  return mlp_padded(width) / 4 % 2 == 0 ? mlp_padded(width) + 4 : mlp_padded(width);
}
// Of a weight (rows, columns): 16 bytes follow every four rows, so that those are in different banks.
inline std::int64_t mlp_weight_elements(std::int64_t rows, std::int64_t columns) {
  return mlp_padded(rows) / 4 * (4 * mlp_padded(columns) + 4);
}

// Where a block has its arrays in shared memory, in elements. Rows are kMlpRows of them. The forward pass
// uses some of them.
struct MlpLayout {
  std::int64_t weight1, weight2;
  std::int64_t of_hidden, of_out;  // bias1, swish weight and bias; bias2, norm weight and bias: padded widths
  std::int64_t x, a;
  std::int64_t hidden_rows;  // dh, h and what reaches its norm
  std::int64_t out_rows;     // dz, z, dy
  std::int64_t elements;     // all of it
};
inline MlpLayout mlp_layout(const MlpShape& s) {
  const std::int64_t hidden_rows = kMlpRows * mlp_stride(s.hidden), out_rows = kMlpRows * mlp_stride(s.out);
  MlpLayout at{};
  at.weight2 = at.weight1 + mlp_weight_elements(s.in, s.hidden);
  at.of_hidden = at.weight2 + mlp_weight_elements(s.hidden, s.out);
  at.of_out = at.of_hidden + 3 * mlp_padded(s.hidden);
  at.x = at.of_out + 3 * mlp_padded(s.out);
  at.a = at.x + kMlpRows * mlp_stride(s.in);
  at.hidden_rows = at.a + hidden_rows;
  at.out_rows = at.hidden_rows + 3 * hidden_rows;
  at.elements = at.out_rows + 3 * out_rows;
  return at;
}
inline std::int64_t mlp_shared_bytes(const MlpShape& s) {
  return mlp_layout(s).elements * std::int64_t{sizeof(float)};
}

}  // namespace hstu::kernels
