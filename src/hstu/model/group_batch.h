// The samples of all ranks of a tensor group as one batch, in the order of ranks: what a layer computes whose
// heads the ranks share. Each rank keeps its own samples outside of the layers.
#pragma once

#include <cstdint>

#include "hstu/comm/groups.h"
#include "hstu/model/hstu_stack.h"

namespace hstu {

struct GroupBatch {
  StackTokens tokens;
  GroupRows every_layer, last_layer;
};

// From this rank's arguments of a stack of layers. One exchange between the hosts of the group, and some of
// integers for each token: once for all layers. `type`: of the tokens (T, D). All ranks call it together.
GroupBatch gather_batch(const Group& group, const StackTokens& mine, std::int64_t tokens, DType type,
                        const Context& context);

}  // namespace hstu
