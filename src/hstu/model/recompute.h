#pragma once

namespace hstu {

// What the backward pass of a layer computes once more, with the same bits, instead of keeping it: the
// normalised input (T, D); U and the activated V, Q and K (T, 4 * H * head_dim), where they are activated;
// the gate's result; the whole layer, of which only the input (T, D) is kept. The others then concern the
// layer that is computed again.
struct Recompute {
  bool norm = false, silu = false, gate = false, layer = false;
};

}  // namespace hstu
