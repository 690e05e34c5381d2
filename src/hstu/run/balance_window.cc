#include "hstu/run/balance_window.h"

#include <algorithm>

namespace hstu {

void BalanceWindow::add(const DivisionFigures& division) {
  if (most_ == 0 || division.work.empty()) return;
  steps_.push_back({imbalance(division.work_of_slices), imbalance(division.work)});
  if (std::ssize(steps_) > most_) steps_.pop_front();
}

Json BalanceWindow::json() const {
  if (steps_.empty()) return nullptr;
  Step sum{0, 0}, worst{0, 0};
  for (const Step& step : steps_) {
    sum.before += step.before, sum.after += step.after;
    worst.before = std::max(worst.before, step.before), worst.after = std::max(worst.after, step.after);
  }
  const auto n = static_cast<double>(steps_.size());
  return {{"steps", std::ssize(steps_)},
          {"before", sum.before / n},
          {"after", sum.after / n},
          {"worst_before", worst.before},
          {"worst_after", worst.after}};
}

}  // namespace hstu
