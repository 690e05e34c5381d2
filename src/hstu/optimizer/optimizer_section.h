// The checkpoint section of a dense optimizer.
#pragma once

#include "hstu/checkpoint/section.h"
#include "hstu/optimizer/dense_optimizer.h"

namespace hstu {

// File "optimizer": `step` (I64, (1)), the number of updates, and every tensor of DenseOptimizer::state().
// `optimizer` must outlive the section.
Section optimizer_section(DenseOptimizer& optimizer);

}  // namespace hstu
