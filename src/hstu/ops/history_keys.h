// Keys and values of tokens that earlier passes computed, by layer, and where a pass keeps those of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hstu/ops/attention.h"

namespace hstu {

struct HistoryKeys {
  // Of each layer: (N * page_tokens, H * D) in its type.
  struct Layer {
    Tensor k, v;
  };
  std::vector<Layer> layers;
  ops::AttentionPast past;  // without k and v; undefined past_of: no sample has one
  Tensor tokens, slots;     // of ops::AttentionKept
  Tensor time;              // the same, of all layers; undefined: none are kept

  // Of the next pass, which has `count` tokens and is on the context's device: keeps all of them, in rows
  // from `first` on.
  void keep(std::int64_t first, std::int64_t count, const Context& context);

  // Gives a layer's attention its past and the place of its keys.
  void attach(std::size_t layer, ops::AttentionShape& shape) const {
    const Layer& keys = layers[layer];
    if (past.past_of.defined()) {
      shape.past = past;
      shape.past.k = keys.k, shape.past.v = keys.v;
    }
    if (tokens.defined()) shape.kept = {keys.k, keys.v, tokens, slots, layer == 0 ? time : Tensor()};
  }
};

}  // namespace hstu
