// The samples of a batch as kernels for tensor cores read them.
#pragma once

#include <cstdint>

#include "hstu/attention/mask.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

struct Samples {
  const std::int64_t* offsets;
  const std::int32_t* contexts;
  const std::int32_t* targets;
  const float* scale;
  const std::int32_t* query_first;  // AttentionProblem's; null: the queries are the last tokens
  std::int32_t left, right, group;
  float common_scale;
  std::int32_t count, heads;
};

Samples samples_of(const AttentionProblem& problem);

}  // namespace hstu::cuda
