// How the launches of a step reach a GPU.
#pragma once

#include <cstdint>

#include "hstu/batching/batch.h"
#include "hstu/experiment/learner.h"

namespace hstu {

// Whether launches take the host longer than their work takes the GPU.
inline bool has_few_tokens(const Batch& batch) {
  return batch.tokens <= std::int64_t{1} << 14;
}

// Calls work(), of this batch (null: none). Its launches reach the GPU in groups, but not with several GPUs,
// where other threads use the stream too.
template <typename Work>
void with_launches_of(const Learner& learner, const Batch* batch, const Work& work) {
  const bool on_one_gpu = !learner.compute.device().is_host() && learner.gpus == nullptr;
  if (on_one_gpu && batch != nullptr && has_few_tokens(*batch))
    learner.compute.stream.in_groups(work);
  else
    work();
}

// A step is one group of launches if its tables have no stream of their own. Otherwise each of its parts is,
// as many parts would be many graphs.
inline bool is_step_a_group(const Learner& learner) {
  return learner.tables.stream() == learner.compute.stream;
}
// `first`: the step's first part.
template <typename Work>
void with_launches_of_step(const Learner& learner, const Batch* first, const Work& work) {
  with_launches_of(learner, is_step_a_group(learner) ? first : nullptr, work);
}
template <typename Work>
void with_launches_of_part(const Learner& learner, const Batch* part, const Work& work) {
  with_launches_of(learner, is_step_a_group(learner) ? nullptr : part, work);
}

}  // namespace hstu
