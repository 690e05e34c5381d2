// The kernels of a dry run: each takes the scratch memory that it takes on a GPU, and gives it back. Kernels
// for the host take none from the pool. What depends on a constant of a kernel in cuda/ names that file;
// scratch that does not grow with the batch or the model is left out.
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

namespace hstu::kernels {

namespace dry {

inline void take(const DryStream& stream, std::int64_t bytes) {
  if (!stream.device.is_host() && bytes > 0) stream.memory->allocate(bytes);
}

// Parts of sums that are gradients of parameters (cuda/part_sums.cuh).
inline void take_parts(const DryStream& stream, std::int64_t floats) {
  if (!stream.device.is_host() && floats > 0) stream.memory->take_late(floats * std::int64_t{sizeof(float)});
}

// A product (m, n) over k: where its tiles are fewer than the blocks that a GPU wants, k is cut into parts,
// whose sums are in memory (gemm_tile.cuh).
struct Tiles {
  std::int64_t rows, columns, wanted, shortest, least_divided = 0;
};
inline std::int64_t parts(const Tiles& t, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (k < t.least_divided) return 1;
  const std::int64_t tiles = ((m + t.rows - 1) / t.rows) * ((n + t.columns - 1) / t.columns);
  return std::max<std::int64_t>(
      1, std::min(t.wanted / std::max<std::int64_t>(tiles, 1), (k + t.shortest - 1) / t.shortest));
}
// The floats of a product. `sums`: over tokens into fp32, the only form that is cut on Hopper.
template <typename T>
std::int64_t product_floats(const DryStream& stream, std::int64_t m, std::int64_t n, std::int64_t k,
                            bool sums) {
  constexpr Tiles kPlain{64, 64, 256, 64, 256}, kMma{128, 128, 264, 512};  // gemm.cu, gemm_mma.cu
  std::int64_t count = parts(std::is_same_v<T, BFloat16> ? kMma : kPlain, m, n, k);
  if (std::is_same_v<T, BFloat16> && stream.device.major == 9) {  // gemm_sm90.cu
    const Tiles pairs{256, 256, stream.device.multiprocessors / 2, 512};
    const std::int64_t on_hopper = sums ? parts(pairs, m, n, k) : 1;
    if (((m + 255) / 256) * ((n + 255) / 256) * on_hopper >= 12) count = on_hopper;
  }
  return count > 1 ? count * m * n : 0;
}

// Sums over rows of two gradients of `width` (norm_rows.cuh).
inline void take_norm_sums(const DryStream& stream, std::int64_t rows, std::int64_t width) {
  take_parts(stream, 2 * std::min<std::int64_t>(264, rows) * width);
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
  const std::int64_t strips = std::min<std::int64_t>(512, (p.rows + 15) / 16);  // column_sums.cuh
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
    const std::int64_t chunk = p.tokens < (1 << 17) ? 16 : 64, chunks = (p.tokens + chunk - 1) / chunk;
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
