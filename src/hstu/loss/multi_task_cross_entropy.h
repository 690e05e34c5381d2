// The loss of several yes-or-no tasks with one logit each.
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::loss {

// factor * sum over the rows and tasks of BCE(sigmoid(logits[r, k]), bit k of labels[r]), a tensor of one
// element. The caller divides once by the global number of labels (rows, not rows times tasks), through
// `factor`. logits (R, K); labels (R) i64, bit 0 for the first task. Stable for logits of any size.
Variable multi_task_cross_entropy(Tape& tape, const Variable& logits, const Tensor& labels, double factor);

}  // namespace hstu::loss
