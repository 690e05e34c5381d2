// The memory of a value that has been sent to other ranks.
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// Frees the value of x. Nothing may read its elements again: what needs its shape and type, as gradients do,
// finds uninitialised memory.
inline void forget_value(const Variable& x, const Context& context) {
  x.recomputed_by([shape = x.value().shape(), type = x.value().dtype(), context] {
    return Tensor::empty(shape, type, context);
  });
  x.drop_value();
}

}  // namespace hstu::ops
