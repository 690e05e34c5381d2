// How the launches of a batch reach a GPU.
#pragma once

#include <cstdint>

#include "hstu/batching/batch.h"
#include "hstu/training/learner.h"

namespace hstu {

// Calls work(), the passes of the batch. Where it has few tokens, launches take the host longer than their
// work takes the GPU: they reach it in groups. Not with several GPUs, where other threads use the stream too.
template <typename Work>
void with_launches_of(const Learner& learner, const Batch& batch, const Work& work) {
  constexpr std::int64_t kFewTokens = 1 << 14;
  if (learner.gpus == nullptr && batch.tokens <= kFewTokens)
    learner.compute.stream.in_groups(work);
  else
    work();
}

}  // namespace hstu
