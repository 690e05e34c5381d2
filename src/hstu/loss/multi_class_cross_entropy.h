// The loss of one class out of several.
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::loss {

// factor * sum over the rows of -log softmax(logits[r])[labels[r]], a tensor of one element. The caller
// divides once by the global number of labels, through `factor`. logits (R, C); labels (R) i64 in [0, C),
// which the caller has checked. Stable for logits of any size.
Variable multi_class_cross_entropy(Tape& tape, const Variable& logits, const Tensor& labels, double factor);

}  // namespace hstu::loss
