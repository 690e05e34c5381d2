// What kinds of models with HSTU layers describe and check in the same way.
#pragma once

#include <cstdint>

#include "hstu/config/config.h"
#include "hstu/model/recompute.h"

namespace hstu {

inline constexpr double kMostWidth = 1 << 16, kMostTokens = 1 << 24;

// Keys of the sizes that every kind's configuration has: embedding_dim, dim, layers, heads, head_dim.
template <typename Config>
void describe_sizes(ConfigFields& f, Config& o) {
  f.field("embedding_dim", o.embedding_dim, "width of the embedding tables", rule::between(1, kMostWidth));
  f.field("dim", o.dim, "width of the sequence model", rule::between(1, kMostWidth));
  f.field("layers", o.layers, "HSTU layers", rule::between(1, kMostWidth));
  f.field("heads", o.heads, "attention heads", rule::between(1, kMostWidth));
  f.field("head_dim", o.head_dim, "width of a head's queries, keys and values", rule::between(1, kMostWidth));
}

// Less memory for more time; the results are the same bits. Without Recompute::silu, which few kinds have.
void describe_recompute(ConfigFields& fields, Recompute& recompute);

// Refuses sizes whose weights alone exceed this machine's memory, before anything is allocated. Memory that
// other parts need is refused when they ask for it.
void check_layers_fit(std::int64_t layers, std::int64_t dim, std::int64_t heads, std::int64_t head_dim);

}  // namespace hstu
