#include "hstu/benchmark/layer_needs.h"

#include "hstu/model/stages.h"

namespace hstu {
namespace {

// A stage by its numbers of values; weights' gradients are fp32.
struct Traffic {
  std::int64_t inputs, outputs, weights;

  // Forward: inputs and weights to outputs. Backward: inputs, weights and the outputs' gradients to the
  // gradients of inputs and weights.
  std::int64_t bytes(std::int64_t value_bytes) const {
    return value_bytes * (inputs + weights + outputs) + value_bytes * (2 * inputs + weights + outputs) +
           4 * weights;
  }
};

void add(std::string_view stage, std::int64_t flops, std::int64_t bytes, NeedsByStage& needs) {
  StageNeeds& sum = needs[std::string(stage)];
  sum.flops += static_cast<double>(flops);
  sum.least_bytes += static_cast<double>(bytes);
}

}  // namespace

void add_layer_needs(const HstuLayerConfig& layer, std::int64_t tokens, std::int64_t queries,
                     std::int64_t value_bytes, const LayerFlops& flops, NeedsByStage& needs) {
  const std::int64_t dim = layer.dim, width = layer.heads * layer.head_dim,
                     gated = kernels::gate_parts(layer.gate) * width;
  const std::int64_t uq = 2 * queries * width, vk = 2 * tokens * width, q = queries * width;
  const Traffic uvqk{.inputs = tokens * dim, .outputs = uq + vk, .weights = 4 * width * dim};
  const Traffic attention{.inputs = q + vk, .outputs = q, .weights = 0};
  const Traffic gate{.inputs = 2 * q, .outputs = queries * gated, .weights = 0};
  const Traffic projection{.inputs = queries * gated, .outputs = queries * dim, .weights = gated * dim};
  add(kNormUvqkStage, 3 * flops.uvqk, uvqk.bytes(value_bytes), needs);
  add(kAttentionStage, flops.attention / 2 * 7, attention.bytes(value_bytes), needs);
  add(kGateStage, 0, gate.bytes(value_bytes), needs);
  // The residual is read in the forward pass; its gradient is the output's.
  add(kProjectionStage, 3 * flops.projection, projection.bytes(value_bytes) + value_bytes * queries * dim,
      needs);
}

}  // namespace hstu
