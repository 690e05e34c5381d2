// Begins a run with the parameters and table rows of another run's checkpoint. Optimizers begin anew.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/json.h"
#include "hstu/embedding/table_set.h"
#include "hstu/run/options.h"
#include "hstu/tensor/parameter.h"

namespace hstu {

// What a warm start did, by names of this model's parameters and tables ("table item").
struct WarmStartReport {
  Path checkpoint;
  std::int64_t step = 0;
  std::int64_t rows = 0;                // of tables
  std::vector<std::string> matched;     // under the same name
  std::vector<std::string> renamed;     // "mine, from theirs"
  std::vector<std::string> misfitting;  // "name: shape there, shape here"; at its initial value
  std::vector<std::string> initial;     // the other model has none of the name; at its initial value
  std::vector<std::string> unused;      // of the other model
};

// A parameter takes the values of the one of its name, or of the name that the map gives, when the shape is
// the same; a table takes every row that lies in its range, when the width is the same. The map is a TOML
// file:
//   [parameters]
//   "head.0.weight" = "old_head.0.weight"    # this model's name = the other's
//   [tables]
//   item = "track"
// Throws UsageError when nothing fits, or the map has a name that one of the models does not.
WarmStartReport warm_start(const WarmStartSection& section, const NamedTensors& parameters, TableSet& tables);

// The checkpoint that `path` means: a checkpoint's folder, or the newest one of a run. Absolute. UsageError
// when it is neither.
Path warm_start_checkpoint(const Path& path);

std::string to_text(const WarmStartReport& report);
Json to_json(const WarmStartReport& report);

}  // namespace hstu
