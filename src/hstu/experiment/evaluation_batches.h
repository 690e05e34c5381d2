// Which samples an evaluation scores, and in which batches: for what scores them, and for plans.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/batching/anchors.h"
#include "hstu/batching/loader.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/options/options.h"

namespace hstu {

// The held-out anchors in the dataset's order, at most evaluation.max_samples of them (0: all).
std::vector<std::int64_t> held_out_positions(const RunOptions& options, const Anchors& anchors);
// The anchors of a window of training, at most so many.
std::vector<std::int64_t> window_positions(const RunOptions& options, const Anchors& anchors,
                                           std::int64_t window);

// Samples of a global batch on `ranks` ranks. `samples`: of evaluations. Where each sample is ranked among
// all items, a rank has at most 65,536 of those, each of which is a token: no result depends on batches.
std::int64_t scored_batch_size(const RunOptions& options, const SampleBuilder& samples, int ranks);

// What does not depend on a learner.
LoaderOptions evaluation_loading(const RunOptions& options, int ranks, int rank);

}  // namespace hstu
