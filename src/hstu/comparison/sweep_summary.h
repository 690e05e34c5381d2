// The results of a sweep by setting: medians and ranges over the seeds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/comparison/run_outcome.h"
#include "hstu/comparison/sweep.h"

namespace hstu {

struct SweepResult {
  SweepRun run;
  std::string state;  // "failed", or the outcome's
  RunOutcome outcome;
};

// The median of an even number is the mean of the two in the middle.
struct Spread {
  double median, least, most;
};
std::optional<Spread> spread_of(std::vector<double> values);

// A header and a row for each setting, in the order of the results, over its runs that ended.
std::vector<Cells> sweep_table(std::span<const SweepResult> results);
// A line for each setting: its keys, the spread of each metric, and its runs.
std::string sweep_lines(std::span<const SweepResult> results);

}  // namespace hstu
