// The runs of a sweep: every combination of the varied keys, with every seed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hstu/comparison/planned_run.h"

namespace hstu {

// "model.layers=1,2,3". Commas inside brackets, braces and quotes belong to a value.
struct Variation {
  std::string key;
  std::vector<std::string> values;  // as --set takes them
};
// UsageError for a word without "=", an empty value or a value twice.
Variation parse_variation(const std::string& word);

struct SweepWords {
  Path config, output;
  std::vector<std::string> set;
  std::vector<Variation> vary;
  std::int64_t seeds = 1;
};

struct SweepRun : PlannedRun {                               // "model.layers=2,seed=1"
  std::vector<std::pair<std::string, std::string>> setting;  // varied keys with their values
  std::uint64_t seed = 0;
};

// The settings in the order of their words, the last key the fastest; of each setting, `seeds` runs with the
// configuration's seed and those after it. Throws UsageError if one is no valid configuration, a key is
// varied twice, or two runs would have one name.
std::vector<SweepRun> plan_sweep(const SweepWords& words);

}  // namespace hstu
