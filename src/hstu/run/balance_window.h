// How even the work of the ranks was in the latest steps, before and after it was divided.
#pragma once

#include <cstdint>
#include <deque>

#include "hstu/balance/partition.h"
#include "hstu/base/json.h"

namespace hstu {

class BalanceWindow {
 public:
  // Of the latest `steps` steps; 0: of none.
  explicit BalanceWindow(std::int64_t steps) : most_(steps) {}

  // A step's division; one of a single rank is left out.
  void add(const DivisionFigures& division);
  // {"steps", "before", "after": means, "worst_before", "worst_after"}; null: there is no step.
  Json json() const;

 private:
  struct Step {
    double before, after;  // the largest work of a rank over the mean
  };
  std::int64_t most_;
  std::deque<Step> steps_;
};

}  // namespace hstu
