// The ranking loss.
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::loss {

// factor * sum over samples b of weights[b] * BCE(sigmoid(logits[b]), labels[b]), a tensor of one element on
// the tape's device. The caller divides once by the global number of supervised samples, through `factor`:
// the gradient may not depend on how a batch is split. logits (B) or (B, 1); labels (B) f32, 0 or 1; weights
// (B) f32, not negative; the logits of samples with 0 (padding) are not read. Stable for logits of any size.
Variable binary_cross_entropy(Tape& tape, const Variable& logits, const Tensor& labels, const Tensor& weights,
                              double factor);

}  // namespace hstu::loss
