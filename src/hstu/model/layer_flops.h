// Floating-point operations (FLOPs) of HSTU layers, counted as publications count them: a multiply-add is
// two; products with weights and the pairs of attention count, embeddings, norms, gates, MLPs and the head do
// not. Sources: the FLOPs of MLPerf's DLRMv4 reference, and those of NVIDIA's HSTU example, which adds a
// ten-thousandth for elementwise work.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/attention/mask.h"
#include "hstu/model/hstu_stack.h"

namespace hstu {

// FLOPs of a forward pass, by what computes them.
struct LayerFlops {
  std::int64_t uvqk = 0, attention = 0, projection = 0;

  std::int64_t forward() const { return uvqk + attention + projection; }
  // A backward pass computes two products for each product of the forward pass. Attention's computes five
  // where the forward pass computes two: the scores once more, and the gradients of V, of the scores, of Q
  // and of K.
  std::int64_t backward() const { return 2 * (uvqk + projection) + attention / 2 * 5; }
  std::int64_t step() const { return forward() + backward(); }

  LayerFlops& operator+=(const LayerFlops& other) {
    uvqk += other.uvqk, attention += other.attention, projection += other.projection;
    return *this;
  }
};

struct StackFlops {
  LayerFlops
      model;  // every layer on every token: the published formula, with the batch's own lengths and pairs
  LayerFlops
      computed;  // what HstuStack computes: the last layer's queries and outputs for the wanted tokens alone

  StackFlops& operator+=(const StackFlops& other) {
    model += other.model, computed += other.computed;
    return *this;
  }
};

// One sample of a batch.
struct SampleQueries {
  SampleMask mask;          // its tokens and which of them see each other
  std::int32_t wanted = 0;  // its last tokens, which HstuStack returns
};

// The mask of a sample of `tokens` tokens without contexts and targets.
SampleMask causal_mask(std::int64_t tokens);

// Of one layer for one sample, where the last `queries` tokens are queries.
LayerFlops layer_flops(const HstuLayerConfig& layer, const SampleMask& mask, std::int32_t queries);

// Of a stack for a batch.
StackFlops stack_flops(const HstuStackConfig& stack, std::span<const SampleQueries> samples);

}  // namespace hstu
