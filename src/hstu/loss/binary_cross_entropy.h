// The ranking loss.
#pragma once

#include <vector>

#include "hstu/tensor/tape.h"

namespace hstu::loss {

// factor * sum over b of BCE(sigmoid(logits[b]), labels[b]), a tensor of one element. The caller divides once
// by the global number of supervised samples, through `factor`: the gradient may not depend on how a batch is
// split. logits (B) or (B, 1), labels 0 or 1. Stable for logits of any size.
Variable binary_cross_entropy(Tape& tape, const Variable& logits, std::vector<float> labels, double factor);

}  // namespace hstu::loss
