// The checkpoint section of a dense optimizer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/checkpoint/section.h"
#include "hstu/optimizer/dense_optimizer.h"

namespace hstu {

// File "optimizer": `step` (I64, (1)), the number of updates, and the tensors of
// DenseOptimizer::whole_state(), however the state is divided among ranks: each loads what its shard has of
// its parts of parameters. Saves `whole`, those tensors in host memory; without them it saves the state of an
// optimizer without shards, of whole parameters. `optimizer` must outlive the section. Where states began
// after others, the description has DenseOptimizer::begun() by parameter, without zeros.
Section optimizer_section(DenseOptimizer& optimizer, std::vector<Tensor> whole = {});

// What that description says of a parameter; 0 without it.
std::int64_t saved_begun(const SectionReader& reader, const std::string& parameter);

}  // namespace hstu
