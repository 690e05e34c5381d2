// The self-check of a finished log: the rules of the official compliance checker for benchmark dlrmv4 of
// MLPerf Training 6.1, with its verdict (docs/mlperf.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/mlperf/log_lines.h"

namespace hstu {

struct LogVerdict {
  std::vector<std::string> errors;    // none: the log complies
  std::vector<std::string> warnings;  // a key twice with the same value

  bool complies() const { return errors.empty(); }
};

// Error if the file cannot be read.
LogVerdict check_mllog(const Path& file);
LogVerdict check_mllog(const MllogFile& log);

// What a log says of its run.
struct LoggedRun {
  std::optional<double> init_seconds;  // from the first init_start to init_stop
  std::optional<double> run_seconds;   // from run_start to run_stop
  std::string division;                // "": there is none
  std::string status;                  // of run_stop; "": there is none
  std::optional<double> batch;         // global_batch_size
  std::optional<double> samples;       // of the last evaluation before run_stop
  std::optional<double> auc;           // of that
};
LoggedRun logged_run(const MllogFile& log);

}  // namespace hstu
