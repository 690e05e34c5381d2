// The kernels of a dry run: each takes the scratch memory that it takes on a GPU, and gives it back. Kernels
// for the host take none from the pool. What depends on the division of a kernel's work reads
// scratch_sizes.h, as its launcher does; scratch that does not grow with the batch or the model is left out.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/dry_memory_pool.h"
#include "hstu/kernels/elementwise.h"
#include "hstu/kernels/gate.h"
#include "hstu/kernels/gather_sum.h"
#include "hstu/kernels/layer_norm.h"
#include "hstu/kernels/linear.h"
#include "hstu/kernels/scratch_sizes.h"

namespace hstu::kernels {

namespace dry {

inline void take(const DryStream& stream, std::int64_t bytes) {
  if (!stream.device.is_host() && bytes > 0) stream.memory->allocate(bytes);
}

// Parts of sums that are gradients of parameters (cuda/part_sums.cuh).
inline void take_parts(const DryStream& stream, std::int64_t floats) {
  if (!stream.device.is_host() && floats > 0) stream.memory->take_late(floats * std::int64_t{sizeof(float)});
}

// The floats of a product. `sums`: over tokens into fp32, the only form that is cut on Hopper.
template <typename T>
std::int64_t product_floats(const DryStream& stream, std::int64_t m, std::int64_t n, std::int64_t k,
                            bool sums) {
  const auto parts = [&](const ProductTiles& t) { return parts_of(k, count_of_tiles(m, n, t), t).count; };
  std::int64_t count = parts(std::is_same_v<T, BFloat16> ? kMmaTiles : kPlainTiles);
  if (std::is_same_v<T, BFloat16> && stream.device.major == 9) {
    const ProductTiles pairs = hopper_tiles(stream.device.multiprocessors);
    const std::int64_t on_hopper = sums ? parts(pairs) : 1;
    if (count_of_tiles(m, n, pairs) * on_hopper >= kLeastHopperTiles) count = on_hopper;
  }
  return count > 1 ? count * m * n : 0;
}

// Sums over rows of two gradients of `width` (norm_rows.cuh).
inline void take_norm_sums(const DryStream& stream, std::int64_t rows, std::int64_t width) {
  take_parts(stream, 2 * std::min(kNormBlocksWithSums, rows) * width);
}

}  // namespace dry

template <typename T>
void linear(const LinearForward<T>& p, DryStream stream) {
  for (const ColumnRange& c : p.columns)
    dry::take(stream,
              dry::product_floats<T>(stream, p.rows, c.width(), p.in, false) * std::int64_t{sizeof(float)});
}
template <typename T>
void linear_backward(const LinearBackward<T>& p, DryStream stream) {
  const std::int64_t strip = rows_of_strip(p.rows), strips = (p.rows + strip - 1) / strip;
  for (const ColumnRange& c : p.columns) {
    const std::int64_t of_weight = p.dweight.to == nullptr
                                       ? 0
                                       : dry::product_floats<T>(stream, p.in, c.width(), p.rows, true),
                       of_x = p.dx.to == nullptr
                                  ? 0
                                  : dry::product_floats<T>(stream, p.rows, p.in, c.width(), false);
    if (p.dbias.to != nullptr && p.dweight.to == nullptr) dry::take_parts(stream, strips * c.width());
    // On CUDA cores both are one launch (linear.cu), and the sums of the weight's parts are late (gemm.cu).
    constexpr bool kOnCudaCores = std::is_same_v<T, float>;
    if (kOnCudaCores) dry::take_parts(stream, of_weight);
    dry::take(stream, (kOnCudaCores ? of_x : std::max(of_weight, of_x)) * std::int64_t{sizeof(float)});
  }
}
template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p, DryStream stream) {
  dry::take_norm_sums(stream, p.rows, p.width);
}
template <typename T>
void swish_layer_norm_backward(const LayerNormBackward<T>& p, DryStream stream) {
  dry::take_norm_sums(stream, p.rows, p.width);
}
template <typename T>
void gate_backward(const GateBackward<T>& p, DryStream stream) {
  dry::take_norm_sums(stream, p.rows, p.width);
}
// Keys and tokens, each twice, and two rows for each chunk of tokens (scatter_add.cu).
template <typename T, typename Out>
void scatter_add(std::span<const ScatterAdd<T, Out>> all, DryStream stream) {
  for (const ScatterAdd<T, Out>& p : all) {
    if (p.drows.to == nullptr) continue;
    const std::int64_t chunk = tokens_of_chunk(p.tokens), chunks = (p.tokens + chunk - 1) / chunk;
    dry::take(stream, 16 * p.tokens + 2 * chunks * p.width * std::int64_t{sizeof(float)});
  }
}

// Without scratch.
template <typename P>
void action_rows(const P&, DryStream) {}
template <typename P>
void action_rows_backward(const P&, DryStream) {}
template <typename P>
void activate(const P&, DryStream) {}
template <typename P>
void activate_backward(const P&, DryStream) {}
template <typename P>
void add(const P&, DryStream) {}
template <typename P>
void apply_dropout(const P&, DryStream) {}
template <typename P>
void binary_cross_entropy(const P&, DryStream) {}
template <typename P>
void binary_cross_entropy_backward(const P&, DryStream) {}
template <typename P>
void concat_columns(const P&, DryStream) {}
template <typename P>
void concat_columns_backward(const P&, DryStream) {}
template <typename P>
void convert(const P&, DryStream) {}
template <typename P>
void gate(const P&, DryStream) {}
template <typename P>
void gather_rows(const P&, DryStream) {}
template <typename P>
void gather_sum(const P&, DryStream) {}
template <typename P>
void l2_normalise(const P&, DryStream) {}
template <typename P>
void l2_normalise_backward(const P&, DryStream) {}
template <typename P>
void layer_norm(const P&, DryStream) {}
template <typename P>
void multi_class_cross_entropy(const P&, DryStream) {}
template <typename P>
void multi_class_cross_entropy_backward(const P&, DryStream) {}
template <typename P>
void multi_task_cross_entropy(const P&, DryStream) {}
template <typename P>
void multi_task_cross_entropy_backward(const P&, DryStream) {}
template <typename P>
void multiply(const P&, DryStream) {}
template <typename P>
void multiply_backward(const P&, DryStream) {}
template <typename P>
void pass_gradient(const P&, DryStream) {}
template <typename P>
void silu_columns(const P&, DryStream) {}
template <typename P>
void silu_slope(const P&, DryStream) {}
template <typename P>
void swish_layer_norm(const P&, DryStream) {}

}  // namespace hstu::kernels
