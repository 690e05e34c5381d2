// The softmax over a catalogue of unit rows where logits have a bound, in bfloat16 on Hopper
// (kernels/exp_sums.h): a part of catalogue_softmax, which knows of ranks and of the loss.
#pragma once

#include <cstdint>

#include "hstu/loss/full_softmax.h"

namespace hstu::loss {

// What a forward pass leaves for the backward pass. Alphabet: T positions of all ranks, V items of this one,
// P: E padded.
struct BoundedSoftmax {
  Tensor vectors;          // (T, P) bf16
  Tensor totals, rounded;  // (T) of the exponentials, and of those that were multiplied
  Tensor sums;             // (T, E) of items, each times the exponential of its logit less `shift`
  double shift = 0;
};

// Stream: CudaStream or DryStream.
template <typename Stream>
struct Bounded {
  // Whether it computes this.
  static bool takes(const CatalogueRows& items, const SoftmaxOptions& options, Stream stream);

  // vectors (T, E) bf16; numbers (T) i64 of the targets in `items`. parts (T, 3) and largest (T, 1) as after
  // add_softmax_block of all items.
  static BoundedSoftmax forward(const Tensor& vectors, const Tensor& numbers, const CatalogueRows& items,
                                const SoftmaxOptions& options, Tensor& largest, Tensor& parts,
                                const Context& context, Stream stream);

  // The gradient of the vectors (T, E) f32 by this rank's items, in place of the sums; those of the items are
  // added to `to_items` (V, E), if it is defined. log_sum (T) over all ranks; factor times dloss (1).
  static Tensor backward(const BoundedSoftmax& forward, const Tensor& numbers, const CatalogueRows& items,
                         const SoftmaxOptions& options, const Tensor& log_sum, const Tensor& dloss,
                         double factor, const Tensor& to_items, const Context& context, Stream stream);
};

}  // namespace hstu::loss
