// What learns, as sections of checkpoints.
#pragma once

#include <vector>

#include "hstu/checkpoint/section.h"
#include "hstu/training/learner.h"

namespace hstu {

// Dense parameters, their optimizer, every table, counts of bad ids. The learner must outlive the sections.
std::vector<Section> sections(Learner& learner);

}  // namespace hstu
