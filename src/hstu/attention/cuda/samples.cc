#include "hstu/attention/cuda/samples.h"

namespace hstu::cuda {

Samples samples_of(const AttentionProblem& p) {
  return {.offsets = p.offsets,
          .contexts = p.contexts,
          .targets = p.targets,
          .scale = static_cast<const float*>(p.sample_scale),
          .query_first = p.query_first,
          .left = window_of(p.mask.left),
          .right = window_of(p.mask.right),
          .group = p.mask.target_group,
          .common_scale = static_cast<float>(p.scale),
          .count = static_cast<std::int32_t>(p.samples),
          .heads = static_cast<std::int32_t>(p.heads)};
}

}  // namespace hstu::cuda
