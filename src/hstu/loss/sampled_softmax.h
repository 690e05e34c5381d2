// Losses of positions that each have negatives of their own, which were looked up with the items of the
// batch.
#pragma once

#include <cstdint>

#include "hstu/loss/full_softmax.h"
#include "hstu/tensor/tape.h"

namespace hstu::loss {

// Alphabet: R positions, K negatives of each, I rows of distinct items, E width. A negative that is the
// position's positive gets the logit -5e4 and no gradient; so does index -1, which is none.
struct SampledItems {
  Variable rows;  // (I, E) raw rows
  Tensor index;   // (R, 1 + K) i32 into rows: the positive, then the negatives
};

// The sum over positions of weight * -log softmax(s+, s-_1 .. s-_K)_0, divided by `divisor`, with s = scale *
// vectors (R, E) . row. The caller gives the global number of positions as divisor.
Variable sampled_softmax(Tape& tape, const Variable& vectors, const SampledItems& items,
                         const SoftmaxOptions& options, double divisor);

// Generalised binary cross entropy: (Petrov, Macdonald, "gSASRec: Reducing Overconfidence in Sequential
// Recommendation Trained with Negative Sampling", RecSys'23)
struct GbceOptions {
  SoftmaxOptions logits;       // scale 1 and raw rows in the paper
  std::int64_t catalogue = 0;  // V, at least 2: what negatives are drawn from, evenly
  double calibration = 0.75;   // t: 0, plain binary cross entropy; 1, probabilities that are right on average
};
// With a = K / (V - 1), at most 1, and beta = a (t (1 - 1 / a) + 1 / a): the sum over positions of -(beta log
// sigmoid(s+) + the sum over negatives of log(1 - sigmoid(s-))) / (K + 1), divided by `divisor`. Stable for
// logits of any size.
Variable gbce(Tape& tape, const Variable& vectors, const SampledItems& items, const GbceOptions& options,
              double divisor);

}  // namespace hstu::loss
