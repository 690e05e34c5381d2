// The trivial baseline's metrics on a run's held-out samples, kept in RUN/baseline.json: computing them reads
// the whole dataset, and they change only with the dataset and the hold-out.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/base/files.h"
#include "hstu/batching/holdout.h"
#include "hstu/batching/options.h"
#include "hstu/dataset/dataset.h"
#include "hstu/metrics/measures.h"

namespace hstu {

// The baseline's metrics (measures_of in metrics/ranking.h) on the anchors at `positions`, from `file` if
// that was written for the same dataset, hold-out and samples; otherwise computed and written there. Ignores
// a file that cannot be written or read.
// "": no file. `weighted`: anchors count with the weights of their events.
Measures baseline_metrics(const Dataset& dataset, const DataOptions& options, const Holdout& holdout,
                          std::span<const std::int64_t> positions, const Path& file, bool weighted = false);

}  // namespace hstu
