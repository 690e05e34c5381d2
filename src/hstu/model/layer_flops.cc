#include "hstu/model/layer_flops.h"

#include "hstu/attention/visible_pairs.h"

namespace hstu {

SampleMask causal_mask(std::int64_t tokens) {
  return sample_mask(static_cast<std::int32_t>(tokens), 0, 0, 1, -1, 0);
}

LayerFlops layer_flops(const HstuLayerConfig& layer, const SampleMask& mask, std::int32_t queries) {
  const std::int64_t dim = layer.dim, width = layer.heads * layer.head_dim, tokens = mask.n;
  // U and Q of the queries, V and K of all tokens; the output product reads the gate's columns.
  // Attention: a product of a query and a key, and one of a weight and a value, for each pair and head.
  return {.uvqk = 2 * dim * (2 * width * queries + 2 * width * tokens),
          .attention = 4 * width * visible_pairs(mask, queries),
          .projection = 2 * kernels::gate_parts(layer.gate) * width * dim * queries};
}

StackFlops stack_flops(const HstuStackConfig& stack, std::span<const SampleQueries> samples) {
  StackFlops sum;
  for (const auto& [mask, wanted] : samples) {
    const LayerFlops whole = layer_flops(stack.layer, mask, mask.n),
                     last = layer_flops(stack.layer, mask, wanted);
    for (std::int64_t i = 0; i < stack.layers; ++i) {
      sum.model += whole;
      sum.computed += i + 1 == stack.layers ? last : whole;
    }
  }
  return sum;
}

}  // namespace hstu
