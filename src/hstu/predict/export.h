// Writes what scoring needs of a run into one folder. docs/predict.md
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

struct ExportOptions {
  Path run, output;
  std::string checkpoint = {};  // a step or "best"; "": the newest
  Path data = {};               // the run's dataset, when it has moved
  // Another export beside `output`, whole, that is kept as long as this one: of tables that it has too, only
  // the rows that changed since are written. "": every row.
  Path base = {};
  std::int64_t increments = 0;  // of exports since the base, with this one
};

// Writes the folder options.output, which appears when it is complete. Returns its manifest without the
// parameters. Throws UsageError if the folder exists or the dataset is not the run's.
Json export_model(const ExportOptions& options);

}  // namespace hstu
