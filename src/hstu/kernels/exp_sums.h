// A softmax over a catalogue in bfloat16 whose logits have a known bound, in the manner of attention: sums of
// rows, each times the exponential of its logit, and what comes before and after them. On Hopper alone.
// Alphabet: R positions, n items of a block, E width, P: E padded with zeros to 64 or 128.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/catalogue_softmax.h"

namespace hstu::kernels {

// 0: rows are too wide.
constexpr std::int64_t padded_width(std::int64_t width) {
  return width <= 64 ? 64 : width <= 128 ? 128 : 0;
}

// Parts into which the other rows of exponential sums are cut (exp_sums_sm90.cu): a block has kExpSumOwn rows
// and a part, and as many blocks as there are multiprocessors run at once.
inline constexpr std::int64_t kExpSumOwn = 128, kExpSumOther = 128;
constexpr std::int64_t exp_sum_parts(std::int64_t rows, std::int64_t others, std::int64_t multiprocessors) {
  const std::int64_t tiles = (rows + kExpSumOwn - 1) / kExpSumOwn,
                     steps = (others + kExpSumOther - 1) / kExpSumOther;
  if (tiles >= 2 * multiprocessors) return 1;
  const auto idle = [&](std::int64_t parts) {  // in blocks, over all rounds, of as many parts
    const std::int64_t rounds = (tiles * parts + multiprocessors - 1) / multiprocessors;
    return (rounds * multiprocessors - tiles * parts) * 64 / parts;
  };
  std::int64_t best = 1;
  // Of many tiles a few parts: each has sums of its own for all rows.
  for (std::int64_t parts = 2; parts <= 8 && parts * 8 <= steps && parts * tiles <= 4 * multiprocessors;
       ++parts)
    if (idle(parts) < idle(best)) best = parts;
  return best;
}

bool has_exp_sums(CudaStream);

// sums[r] = the sum over the other rows j of w_rj value[j], where w_rj = e^(scale * (own[r] . other[j]) -
// shift), rounded to bfloat16. Exponents are below 1, and the same sums have the same bits every time.
struct ExpSums {
  std::int64_t rows = 0, others = 0, width = 0, padded = 0;  // R, n, E, P
  double scale = 1, shift = 0;
  const BFloat16* own = nullptr;                      // (R, P)
  const BFloat16 *other = nullptr, *value = nullptr;  // (n, P)
  bool adds = false;                                  // to what is there
  float* sums = nullptr;                              // (R, E)
  // (R) sums of the exponentials, before and after they were rounded; both or none.
  float *totals = nullptr, *rounded = nullptr;
  // Of the pair whose row is targets[j] - first, less e^(log_sum[j] - shift), before it is rounded; both or
  // none, and not with totals.
  const std::int64_t* targets = nullptr;  // (n)
  const float* log_sum = nullptr;         // (n)
  std::int64_t first = 0;
};
void exp_sums(const ExpSums& p, CudaStream);

// unit[i] = rows[i] / max(|rows[i]|, epsilon), padded.
struct UnitRows {
  std::int64_t rows = 0, width = 0, padded = 0;
  float epsilon = 0;
  const float* x = nullptr;  // (n, E)
  float* norms = nullptr;    // (n)
  BFloat16* unit = nullptr;  // (n, P)
};
void unit_rows(const UnitRows& p, CudaStream);

// to[r] = from[r] * e^(shift - log_sum[r]), padded; without log_sum: from[r].
struct WeighRows {
  std::int64_t rows = 0, width = 0, padded = 0;
  double shift = 0;
  const float* log_sum = nullptr;  // (R) or null
  const BFloat16* from = nullptr;  // (R, E)
  BFloat16* to = nullptr;          // (R, P)
};
void weigh_rows(const WeighRows& p, CudaStream);

// What the positions whose item is in the block learn of it: its logit, and in the backward pass its part of
// their gradients.
struct OwnItems {
  std::int64_t positions = 0, items = 0, first = 0, width = 0, padded = 0;
  double scale = 1;
  const std::int64_t* targets = nullptr;  // (R) numbers in the catalogue
  const BFloat16* vectors = nullptr;      // (R, P)
  const BFloat16* rows = nullptr;         // (n, P)
};
struct OwnLogits {
  OwnItems own;
  SoftmaxPart<float>* parts = nullptr;  // (R) positive and found
};
void own_logits(const OwnLogits& p, CudaStream);

// parts[r].sum = totals[r], of exponents less `shift`, which becomes largest[r].
struct TakeTotals {
  std::int64_t positions = 0;
  double shift = 0;
  const float* totals = nullptr;        // (R)
  float* largest = nullptr;             // (R)
  SoftmaxPart<float>* parts = nullptr;  // (R)
};
void take_totals(const TakeTotals& p, CudaStream);

// dvectors[r] = factor * dloss * p[r] * sums[r] / rounded[r], where p = totals[r] * e^(shift - log_sum[r]) is
// the probability of all items of the sums: with the exponentials as they were multiplied, the error of a
// position that is sure of its item is as small as its gradient.
struct PositionGradients {
  std::int64_t positions = 0, width = 0;
  double shift = 0, factor = 1;
  const float* sums = nullptr;                        // (R, E)
  const float *totals = nullptr, *rounded = nullptr;  // (R)
  const float* log_sum = nullptr;                     // (R)
  const float* dloss = nullptr;                       // (1)
  float* dvectors = nullptr;                          // (R, E); may be `sums`
};
void position_gradients(const PositionGradients& p, CudaStream);

// dvectors[r] -= factor * dloss * rows[the position's item], if it is in the block.
struct OwnItemGradients {
  OwnItems own;
  double factor = 1;
  const float* dloss = nullptr;  // (1)
  float* dvectors = nullptr;     // (R, E)
};
void own_item_gradients(const OwnItemGradients& p, CudaStream);

// to[i] += the gradient of raw row x[i] where factor * dloss * g[i] is that of x[i] / max(|x[i]|, epsilon).
struct RowGradients {
  std::int64_t rows = 0, width = 0;
  float epsilon = 0;
  double factor = 1;
  const float* dloss = nullptr;                              // (1)
  const float *x = nullptr, *norms = nullptr, *g = nullptr;  // (n, E), (n), (n, E)
  float* to = nullptr;                                       // (n, E)
};
void row_gradients(const RowGradients& p, CudaStream);

}  // namespace hstu::kernels
