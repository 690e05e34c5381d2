// The items of a dataset: what a catalogue consists of.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/dataset/dataset.h"

namespace hstu {

// The original ids of the items of all events, ascending, those of held-out events too: an item that is first
// seen after training can be asked for, and must be found. One parallel pass; the result does not depend on
// the number of threads.
std::vector<std::int64_t> all_items(const Dataset& dataset);

}  // namespace hstu
