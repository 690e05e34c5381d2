// The objective of models whose outputs are lists of items, not vectors that are compared with a catalogue.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/kernels/catalogue_scores.h"
#include "hstu/objective/objective.h"

namespace hstu {

class ListObjective : public Objective {
 public:
  const ListObjective* lists() const final { return this; }
  ListObjective* lists() final { return this; }

  // (V) ids of the items that lists may have, ascending.
  virtual const std::vector<std::int64_t>& items() const = 0;
  // How many groups of items, of one or more each, the model's outputs have from now on, where it has as
  // many.
  virtual void set_beam(std::int64_t beam) = 0;
  virtual std::int64_t beam() const = 0;
  // The items of one row of a model's outputs, in their order. Throws NotFiniteError.
  virtual std::vector<kernels::ScoredItem> list(std::span<const float> output) const = 0;
};

}  // namespace hstu
