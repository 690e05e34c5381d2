// What the stages of an HSTU layer need: FLOPs, and the bytes that no implementation of a stage can avoid.
#pragma once

#include <cstdint>

#include "hstu/benchmark/stage_table.h"
#include "hstu/model/hstu_layer.h"
#include "hstu/model/layer_flops.h"

namespace hstu {

// Adds a layer's forward and backward pass to `needs`, by the stages of model/stages.h: FLOPs of `flops`, and
// the bytes of `queries` of `tokens` tokens in all samples, whose values take `value_bytes` each. Least
// bytes: each stage reads its inputs and weights and writes its outputs once in each pass, and in the
// backward pass their gradients, weights' gradients in fp32; it keeps its inputs alone between the
// passes.
void add_layer_needs(const HstuLayerConfig& layer, std::int64_t tokens, std::int64_t queries,
                     std::int64_t value_bytes, const LayerFlops& flops, NeedsByStage& needs);

}  // namespace hstu
