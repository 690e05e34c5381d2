// How the launches of a batch reach a GPU.
#pragma once

#include <cstdint>

#include "hstu/batching/batch.h"
#include "hstu/experiment/learner.h"

namespace hstu {

// Whether launches take the host longer than their work takes the GPU.
inline bool has_few_tokens(const Batch& batch) {
  return batch.tokens <= std::int64_t{1} << 14;
}

// Whether a step is one group of launches; otherwise each of its parts is, as many parts would be many
// graphs.
inline bool is_step_a_group(const Learner& learner) {
  return learner.tables.stream() == learner.compute.stream;
}

// Calls work(), of this batch or of a step that begins with it. Its launches reach the GPU in groups, but not
// with several GPUs, where other threads use the stream too.
template <typename Work>
void with_launches_of(const Learner& learner, const Batch& batch, const Work& work) {
  if (!learner.compute.device().is_host() && learner.gpus == nullptr && has_few_tokens(batch))
    learner.compute.stream.in_groups(work);
  else
    work();
}

}  // namespace hstu
