// How the launches of a batch reach a GPU.
#pragma once

#include <cstdint>

#include "hstu/batching/batch.h"
#include "hstu/training/learner.h"

namespace hstu {

// Whether launches take the host longer than their work takes the GPU.
inline bool has_few_tokens(const Batch& batch) {
  return batch.tokens <= std::int64_t{1} << 14;
}

// Whether the launches of the batch's passes reach the GPU in groups. Not with several GPUs, where other
// threads use the stream too.
inline bool in_groups(const Learner& learner, const Batch& batch) {
  return !learner.compute.device().is_host() && learner.gpus == nullptr && has_few_tokens(batch);
}

// Calls work(), the passes of the batch.
template <typename Work>
void with_launches_of(const Learner& learner, const Batch& batch, const Work& work) {
  if (in_groups(learner, batch))
    learner.compute.stream.in_groups(work);
  else
    work();
}

}  // namespace hstu
