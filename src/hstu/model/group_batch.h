// The samples of all ranks of a tensor group as one batch, in the order of ranks: what a layer computes whose
// heads the ranks share. Each rank keeps its own samples outside of the layers.
#pragma once

#include <cstdint>

#include "hstu/comm/groups.h"
#include "hstu/model/hstu_stack.h"

namespace hstu {

struct GroupBatch {
  StackRows all, wanted;
  StackMask mask;
  double scale = 1;
  Tensor sample_scale;  // (B) f64 for f64, otherwise f32, beside `scale`; undefined: 1
  GroupRows every_layer, last_layer;
};

// From this rank's arguments of a stack of layers. One exchange between the hosts of the group, and some of
// integers for each token: once for all layers. `type`: of the tokens (T, D). All ranks call it together.
GroupBatch gather_batch(const Group& group, const StackRows& all, const StackRows& wanted,
                        const StackMask& mask, double scale, std::int64_t tokens, DType type,
                        const Context& context);

}  // namespace hstu
