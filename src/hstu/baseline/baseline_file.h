// What the trivial baseline scores on a run's held-out samples, kept in RUN/baseline.json: it takes a walk
// over the whole dataset and changes only with the dataset and the hold-out.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/base/files.h"
#include "hstu/batching/holdout.h"
#include "hstu/batching/options.h"
#include "hstu/dataset/dataset.h"
#include "hstu/metrics/ranking.h"

namespace hstu {

// The baseline's metrics on the anchors at `positions`, from `file` when that was written for the same
// dataset, hold-out and samples; else computed and written there. A file that cannot be written or read is as
// good as none. "": no file.
RankingMetrics baseline_metrics(const Dataset& dataset, const DataOptions& options, const Holdout& holdout,
                                std::span<const std::int64_t> positions, const Path& file);

}  // namespace hstu
