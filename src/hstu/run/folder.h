// The folder of a run and the names in it. docs/runs.md
#pragma once

#include "hstu/base/files.h"
#include "hstu/run/options.h"

namespace hstu {

struct RunFolder {
  Path path;

  Path config() const { return path / "config.toml"; }
  Path metrics() const { return path / "metrics.jsonl"; }
  Path checkpoints() const { return path / "checkpoints"; }
  Path summary() const { return path / "summary.json"; }
  Path baseline() const { return path / "baseline.json"; }  // what the baseline scored, for later starts
  Path lock() const { return path / "lock"; }               // held by the process that trains
  Path abandoned() const { return path / "abandoned"; }     // what --from-step put aside
};

// Makes the folder with the resolved configuration in it, at once. UsageError when it exists already.
RunFolder create_run_folder(const Path& path, const RunOptions& options);

// Removes the folder of a run that could not begin: one without a log.
void discard_run_folder(const RunFolder& folder);

// The folder and configuration of an earlier run. UsageError when `path` is not one.
RunFolder open_run_folder(const Path& path);
RunOptions read_run_options(const RunFolder& folder);

// The run among the folders in `place` whose log was written last. UsageError when there is none.
RunFolder latest_run(const Path& place);

}  // namespace hstu
