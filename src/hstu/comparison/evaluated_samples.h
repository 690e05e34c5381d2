// What the evaluations of runs are of: their metrics are to be compared where it is the same.
#pragma once

#include <span>
#include <string>

#include "hstu/config/config_difference.h"
#include "hstu/options/options.h"

namespace hstu {

struct ComparedRun;

// The keys with their values on which the samples of an evaluation depend, and what they are ranked among.
// The seed is none, though it draws the negatives. `dataset`: its id.
ConfigFlattener::Values evaluated_samples(const RunOptions& options, const std::string& dataset);

// "a and b are evaluated on other samples (evaluation.split): ..."; "": all runs on the same.
std::string note_on_samples(std::span<const ComparedRun> runs);

}  // namespace hstu
