// The samples of a batch as kernels see them.
#pragma once

#include "hstu/attention/mask.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

struct Samples {
  const std::int64_t* offsets;
  const std::int32_t* contexts;
  const std::int32_t* targets;
  const float* scale;
  std::int32_t left, right, group;
  float common_scale;
  std::int32_t count, heads;
};

inline Samples samples_of(const AttentionProblem& p) {
  const auto limit = [](std::int32_t window) {
    return window < 0 || window > kUnlimited ? kUnlimited : window;
  };
  return {p.offsets,
          p.contexts,
          p.targets,
          p.sample_scale,
          limit(p.mask.left),
          limit(p.mask.right),
          p.mask.target_group,
          p.scale,
          static_cast<std::int32_t>(p.samples),
          static_cast<std::int32_t>(p.heads)};
}

}  // namespace hstu::cuda
