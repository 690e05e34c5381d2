// What kinds of models with HSTU layers describe and check in the same way.
#pragma once

#include <cstdint>

#include "hstu/config/config.h"
#include "hstu/model/recompute.h"

namespace hstu {

inline constexpr double kMostWidth = 1 << 16, kMostTokens = 1 << 24;

// Less memory for more time; the results are the same bits. Without Recompute::silu, which few kinds have.
void describe_recompute(ConfigFields& fields, Recompute& recompute);

// Refuses sizes whose weights alone exceed this machine's memory, before anything is allocated. Memory that
// other parts need is refused when they ask for it.
void check_layers_fit(std::int64_t layers, std::int64_t dim, std::int64_t heads, std::int64_t head_dim);

}  // namespace hstu
