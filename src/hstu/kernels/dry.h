// The kernels of a dry run: each takes the scratch memory that it takes on a GPU, and gives it back. Kernels
// for the host take none from the pool. Sizes are in scratch_sizes.h, where launchers read them too; scratch
// that does not grow with the batch or the model is left out.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/dry_memory_pool.h"
#include "hstu/kernels/catalogue_softmax.h"
#include "hstu/kernels/exp_sums.h"
#include "hstu/kernels/linear.h"
#include "hstu/kernels/sampled_loss.h"
#include "hstu/kernels/scratch_sizes.h"

namespace hstu::kernels {

namespace dry {

inline void take(const DryStream& stream, std::int64_t bytes) {
  if (!stream.device.is_host() && bytes > 0) stream.memory->allocate(bytes);
}
inline void take_floats(const DryStream& stream, std::int64_t floats) {
  take(stream, floats * std::int64_t{sizeof(float)});
}
// Parts of sums that are gradients of parameters (cuda/part_sums.cuh).
inline void take_parts(const DryStream& stream, std::int64_t floats) {
  if (!stream.device.is_host() && floats > 0) stream.memory->take_late(floats * std::int64_t{sizeof(float)});
}

// Sums over rows of two gradients of a norm.
void take_norm_sums(const auto& p, const DryStream& stream) {
  take_parts(stream, 2 * std::min(kNormBlocksWithSums, p.rows) * p.width);
}

// Whether the kernels for Hopper compute a product of bf16 that is cut into `parts`.
inline bool is_for_hopper(const DryDevice& gpu, std::int64_t m, std::int64_t n, const Parts& parts) {
  return gpu.major == 9 &&
         count_of_tiles(m, n, hopper_tiles(gpu.multiprocessors)) * parts.count >= kLeastHopperTiles;
}

// The floats of a product on the kernels that its type and the GPU have.
template <typename T>
std::int64_t product_floats(const DryDevice& gpu, std::int64_t m, std::int64_t n, std::int64_t k) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    const Parts parts = hopper_parts(m, n, k, false, gpu.multiprocessors);
    return (is_for_hopper(gpu, m, n, parts) ? parts : parts_of(m, n, k, kMmaTiles)).floats(m, n);
  } else {
    return parts_of(m, n, k, kPlainTiles).floats(m, n);
  }
}

// Takes the sums of strips of `rows` rows.
inline void take_strips(const DryStream& stream, std::int64_t rows, std::int64_t width) {
  take_parts(stream, count_of_strips(rows) * width);
}

// The floats of a weight's gradient (m, n), a sum over `rows` into fp32, and of its bias's gradient.
template <typename T>
std::int64_t weight_floats(const DryStream& stream, std::int64_t m, std::int64_t n, std::int64_t rows,
                           bool with_bias) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    const Parts parts = hopper_parts(m, n, rows, true, stream.device.multiprocessors);
    if (is_for_hopper(stream.device, m, n, parts)) {
      const std::int64_t tile_rows = hopper_tiles(stream.device.multiprocessors).rows;
      return parts.floats(m, n) + (with_bias ? parts.count * ((m + tile_rows - 1) / tile_rows) * n : 0);
    }
    if (with_bias) take_strips(stream, rows, n);  // a launch of its own (gemm_mma.cu)
    return parts_of(m, n, rows, kMmaTiles).floats(m, n);
  } else {
    return parts_of(m, n, rows, kPlainTiles).floats(m + (with_bias ? 1 : 0), n);
  }
}

}  // namespace dry

template <typename T>
void linear(const LinearForward<T>& p, DryStream stream) {
  if (p.row_stable) return;
  for (const ColumnRange& c : p.columns)
    dry::take_floats(stream, dry::product_floats<T>(stream.device, p.rows, c.width(), p.in));
}
template <typename T>
void linear_backward(const LinearBackward<T>& p, DryStream stream) {
  for (const ColumnRange& c : p.columns) {
    std::int64_t of_weight = 0, of_x = 0;
    if (p.dweight.to != nullptr)
      of_weight = dry::weight_floats<T>(stream, p.in, c.width(), p.rows, p.dbias.to != nullptr);
    else if (p.dbias.to != nullptr)
      dry::take_strips(stream, p.rows, c.width());
    if (p.dx.to != nullptr) of_x = dry::product_floats<T>(stream.device, p.rows, p.in, c.width());
    // On CUDA cores both are one launch (linear.cu), and the sums of the weight's parts are late (gemm.cu).
    constexpr bool kOnCudaCores = std::is_same_v<T, float>;
    if (kOnCudaCores) dry::take_parts(stream, of_weight);
    dry::take_floats(stream, kOnCudaCores ? of_x : std::max(of_weight, of_x));
  }
}
void layer_norm_backward(const auto& p, DryStream stream) {
  dry::take_norm_sums(p, stream);
}
void swish_layer_norm_backward(const auto& p, DryStream stream) {
  dry::take_norm_sums(p, stream);
}
void gate_backward(const auto& p, DryStream stream) {
  dry::take_norm_sums(p, stream);
}
void rms_norm_backward(const auto& p, DryStream stream) {
  dry::take_norm_sums(p, stream);
}
void scatter_add(const auto& all, DryStream stream) {
  for (const auto& p : all) {
    if (p.drows.to == nullptr) continue;
    dry::take(stream, words_of_sorting(p.tokens) * std::int64_t{sizeof(std::uint32_t)} +
                          floats_of_chunks(p.tokens, p.width) * std::int64_t{sizeof(float)});
  }
}

template <typename T>
void add_softmax_block(const SoftmaxSums<T>& p, DryStream stream) {
  dry::take_floats(stream, softmax_logits(p.block.positions, p.block.items));
}
template <typename T>
void softmax_block_gradients(const SoftmaxGradients<T>& p, DryStream stream) {
  dry::take(stream, softmax_logits(p.block.positions, p.block.items) *
                        static_cast<std::int64_t>(sizeof(float) + sizeof(T)));
}
inline bool has_exp_sums(DryStream stream) {
  return stream.device.major == 9;
}
inline void exp_sums(const ExpSums& p, DryStream stream) {
  const std::int64_t parts = exp_sum_parts(p.rows, p.others, stream.device.multiprocessors);
  if (parts > 1) dry::take_floats(stream, parts * p.rows * (p.width + 2));
}

template <typename T>
void sampled_loss(const SampledLoss<T>& p, DryStream stream) {
  dry::take(stream, p.positions * std::int64_t{sizeof(double)});
}
template <typename T>
void sampled_logits_backward(const SampledLogitsBackward<T>& p, DryStream stream) {
  if (p.drows.to == nullptr) return;
  const std::int64_t pairs = p.forward.positions * p.forward.columns;
  dry::take(stream, (pairs + words_of_sorting(pairs)) * std::int64_t{sizeof(std::uint32_t)} +
                        floats_of_chunks(pairs, p.forward.width) * std::int64_t{sizeof(float)});
}

// Without scratch.
void action_rows(const auto&, DryStream) {}
void action_rows_backward(const auto&, DryStream) {}
void activate(const auto&, DryStream) {}
void activate_backward(const auto&, DryStream) {}
void add(const auto&, DryStream) {}
void apply_dropout(const auto&, DryStream) {}
void binary_cross_entropy(const auto&, DryStream) {}
void binary_cross_entropy_backward(const auto&, DryStream) {}
void concat_columns(const auto&, DryStream) {}
void concat_columns_backward(const auto&, DryStream) {}
void convert(const auto&, DryStream) {}
void copy_pieces(const auto&, DryStream) {}
void copy_rows(const auto&, DryStream) {}
void combine_moments(const auto&, DryStream) {}
void gate(const auto&, DryStream) {}
void gate_backward_sums(const auto&, DryStream) {}
void gate_moments(const auto&, DryStream) {}
void find_ids(const auto&, DryStream) {}
void gather_rows(const auto&, DryStream) {}
void gather_sum(const auto&, DryStream) {}
void l2_normalise(const auto&, DryStream) {}
void l2_normalise_backward(const auto&, DryStream) {}
void layer_norm(const auto&, DryStream) {}
void multi_class_cross_entropy(const auto&, DryStream) {}
void multi_class_cross_entropy_backward(const auto&, DryStream) {}
void multi_task_cross_entropy(const auto&, DryStream) {}
void multi_task_cross_entropy_backward(const auto&, DryStream) {}
void multiply(const auto&, DryStream) {}
void multiply_backward(const auto&, DryStream) {}
void own_item_gradients(const auto&, DryStream) {}
void own_logits(const auto&, DryStream) {}
void pass_gradient(const auto&, DryStream) {}
void position_gradients(const auto&, DryStream) {}
void rescale_softmax(const auto&, DryStream) {}
void rms_norm(const auto&, DryStream) {}
void rotary(const auto&, DryStream) {}
void row_gradients(const auto&, DryStream) {}
void sampled_logits(const auto&, DryStream) {}
void sampled_loss_backward(const auto&, DryStream) {}
void silu_columns(const auto&, DryStream) {}
void silu_slope(const auto&, DryStream) {}
void softmax_loss(const auto&, DryStream) {}
void start_softmax(const auto&, DryStream) {}
void swish_layer_norm(const auto&, DryStream) {}
void take_totals(const auto&, DryStream) {}
void unit_rows(const auto&, DryStream) {}
void weigh_rows(const auto&, DryStream) {}

}  // namespace hstu::kernels
