// The messages under exchanges of rows between the ranks of a group.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/comm/groups.h"
#include "hstu/tensor/context.h"
#include "hstu/tensor/tensor.h"

namespace hstu::ops {

// Sends sent[r] bytes of `from` to rank r, one rank after another, and receives received[r] bytes from it in
// the same way. Where every rank gets all of `from`, `sent` is empty. All ranks of the group call it
// together. In a dry run nothing moves.
void exchange_bytes(Tensor from, std::span<const std::int64_t> sent, Tensor to,
                    std::span<const std::int64_t> received, const Group& group, const Context& context);

}  // namespace hstu::ops
