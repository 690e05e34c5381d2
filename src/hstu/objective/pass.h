// Pass: what an objective reads of a pass over a part of a batch, beside the model's outputs.
#pragma once

#include <span>

#include "hstu/batching/batch.h"
#include "hstu/loss/catalogue_rows.h"
#include "hstu/tensor/tape.h"

namespace hstu {

struct Pass {
  // With several ranks its context has groups, of which `world` shares the global batch: what exchanges is
  // called by all ranks together, also without a sample.
  Tape& tape;
  const Batch& batch;
  // (n_f, E) of each feature of the model: leaves, whose gradients update the rows, or what is projected from
  // leaves of another width.
  std::span<const Variable> rows = {};
  // Of Objective::catalogues(), in its order: this rank's rows, with a gradient in training.
  std::span<const CatalogueRows> catalogues = {};
};

}  // namespace hstu
