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
inline std::int64_t mlp_elements(const MlpShape& s) {
  const auto sizes = mlp_sizes(s);
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}
// Shared memory of a block in the backward pass, which has more than the forward pass: the weights, rows one
// element longer so that columns are in different banks, and for each row x, h, a, dh, its part that the norm
// sees, dy, z and dz.
inline std::int64_t mlp_shared_bytes(const MlpShape& s) {
  const std::int64_t weights = s.in * (s.hidden + 1) + s.hidden * (s.out + 1);
  return (weights + kMlpRows * (s.in + 4 * s.hidden + 3 * s.out)) * std::int64_t{sizeof(float)};
}

}  // namespace hstu::kernels
