// What the softmaxes over a catalogue and over a pool share.
#pragma once

#include <functional>
#include <string_view>

#include "hstu/loss/full_softmax.h"

namespace hstu::loss {

struct CatalogueSoftmax {
  std::string_view name;  // a literal, for messages
  SoftmaxOptions softmax;
  Tensor bias;  // (V) in the type of sums: added to an item's logits, but for positions whose item it is; or
                // none
  Variable rows;                 // what `items` are made of and `finish` passes gradients to; undefined: none
  std::function<void()> finish;  // the end of the backward pass
};

// full_softmax (full_softmax.h) with these.
Variable catalogue_softmax(Tape& tape, const Variable& vectors, const Tensor& targets,
                           const CatalogueRows& items, const CatalogueSoftmax& options, double divisor);

}  // namespace hstu::loss
