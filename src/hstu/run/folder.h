// The folder of a run and the names in it. docs/runs.md
#pragma once

#include "hstu/base/files.h"
#include "hstu/options/options.h"

namespace hstu {

struct RunFolder {
  Path path;

  Path config() const { return path / "config.toml"; }
  Path metrics() const { return path / "metrics.jsonl"; }
  Path checkpoints() const { return path / "checkpoints"; }
  Path summary() const { return path / "summary.json"; }
  Path baseline() const { return path / "baseline.json"; }  // metrics of the baseline, for later starts
  Path mlperf() const { return path / "mlperf" / "result_0.txt"; }  // with mlperf = true
  Path lock() const { return path / "lock"; }                       // held by the process that trains
  Path abandoned() const { return path / "abandoned"; }             // what --from-step moved away
};

// Creates the folder and the resolved configuration in it, atomically. UsageError if it already exists.
RunFolder create_run_folder(const Path& path, const RunOptions& options);

// Removes what a run that made no step has written: configuration, log, baseline. The folder stays if it
// holds anything else.
void discard_run_folder(const RunFolder& folder);

// The folder and the configuration of an earlier run. UsageError if `path` is not a run.
RunFolder open_run_folder(const Path& path);
RunOptions read_run_options(const RunFolder& folder);

// The run among the folders in `place` whose log was written last. UsageError if no folder is a run.
RunFolder latest_run(const Path& place);

}  // namespace hstu
