// The work of a sample as NVIDIA's recsys-examples counts it, for comparisons with its balancer.
#pragma once

#include <cstdint>

namespace hstu {

// Of one HSTU layer for a sequence of `tokens` tokens, width heads * head_dim: attention is counted without a
// causal mask, and once more for each head.
std::int64_t nvidia_layer_work(std::int64_t heads, std::int64_t head_dim, std::int64_t tokens);

}  // namespace hstu
