// Losses of rows of logits with one integer label each.
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::loss {

// What the rows are compared with.
struct RowLabels {
  Tensor labels;        // (R) i64
  Tensor weights = {};  // (R) f32, factors of the rows' losses, not negative; undefined: 1
};

// One class out of several: factor * sum over the rows of weight * -log softmax(logits[r])[labels[r]], a
// tensor of one element. The caller divides once by the global number of labels, through `factor`. logits (R,
// C); labels in [0, C), which the caller has checked.
Variable multi_class_cross_entropy(Tape& tape, const Variable& logits, const RowLabels& rows, double factor);

// Several yes-or-no tasks: factor * sum over the rows and tasks of weight * BCE(sigmoid(logits[r, k]), bit k
// of labels[r]). The caller divides once by the global number of labels (rows, not rows times tasks). logits
// (R, K); labels: bit 0 for the first task.
Variable multi_task_cross_entropy(Tape& tape, const Variable& logits, const RowLabels& rows, double factor);

}  // namespace hstu::loss
