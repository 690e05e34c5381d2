// The folder of a run: config.toml, metrics.jsonl, checkpoints/, summary.json.
#pragma once

#include "hstu/base/files.h"
#include "hstu/training/options.h"

namespace hstu {

struct RunFolder {
  Path path;

  Path config() const { return path / "config.toml"; }
  Path metrics() const { return path / "metrics.jsonl"; }
  Path checkpoints() const { return path / "checkpoints"; }
  Path summary() const { return path / "summary.json"; }
};

// Makes the folder and writes the resolved configuration. UsageError when it exists already.
RunFolder create_run_folder(const Path& path, const RunOptions& options);

// The folder and configuration of an earlier run. UsageError when `path` is not one.
RunFolder open_run_folder(const Path& path);
RunOptions read_run_options(const RunFolder& folder);

}  // namespace hstu
