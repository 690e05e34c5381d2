#include "hstu/score/forward_pass.h"

#include <utility>
#include <vector>

#include "hstu/device/device.h"
#include "hstu/device/pinned_memory.h"
#include "hstu/embedding/table_section.h"
#include "hstu/experiment/device_choice.h"

namespace hstu {

void load_model(const Checkpoint& checkpoint, Learner& learner) {
  std::vector<Section> sections = table_sections(learner.tables);
  sections.push_back(parameters_section(learner.model->parameters().all(), learner.compute.stream));
  for (const Section& section : sections) section.load(checkpoint.section(section.name));
}

ForwardPass::ForwardPass(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset,
                         Task task, bool row_stable)
    : dataset_(dataset),
      task_(std::move(task)),
      samples_(dataset, task_.evaluation),
      learner_(options, std::move(task_.model), std::move(task_.objective),
               open_device(choose_device(options).device)),
      sample_scratch_(samples_.scratch()),
      batch_(transfer_memory(learner_.compute.device())) {
  learner_.compute.row_stable = row_stable;
  load_model(checkpoint, learner_);
}

bool ForwardPass::keep_histories(const HistoryCache::Limits& limits) {
  const Context& compute = learner_.compute;
  const bool on_host = compute.device().is_host();
  const KeptTokens kept = learner_.model->kept_tokens();
  if (kept.layers == 0 || !samples_.shares_contexts()) return false;
  if (!on_host && (kept.bias || compute.row_stable)) return false;
  const bool half = !on_host && learner_.options.precision == Precision::bf16;
  cache_.emplace(kept, half ? DType::bf16 : DType::f32, limits, compute);
  return true;
}

Tensor ForwardPass::outputs(std::span<const Candidate> candidates) {
  make_current(learner_.compute.device());  // of this thread, which may be another one than opened it
  // The events of a dataset in memory are at other addresses than those of the batch before.
  if (dataset_.segments().empty()) sample_scratch_.gatherer = samples_.scratch().gatherer;
  cache_ ? build_unknown(candidates) : build(candidates);
  batch_.supervised = batch_.samples;
  if (batch_.tokens == 0) return {};
  batch_.copy_to(learner_.compute);
  if (cache_) batch_.history_keys = &cache_->keys(batch_);
  Tensor outputs = passes_.outputs(learner_, batch_);
  if (cache_) cache_->commit();
  return outputs;
}

void ForwardPass::build(std::span<const Candidate> candidates) {
  samples_.build(candidates, built_, sample_scratch_);
  batch_.clear();
  learner_.model->layout().lay_out(built_, layout_scratch_, batch_);
}

// Leaves out the events whose keys are known.
void ForwardPass::build_unknown(std::span<const Candidate> candidates) {
  std::vector<HistoryCache::History> histories;
  histories.reserve(candidates.size());
  for (const Candidate& candidate : candidates)
    histories.push_back(
        {candidate.user, samples_.contexts_of(candidate), samples_.history_of(candidate, sample_scratch_)});
  const std::vector<std::int64_t> known = cache_->begin(std::move(histories));
  std::vector<Candidate> shortened(candidates.begin(), candidates.end());
  for (std::size_t b = 0; b < shortened.size(); ++b) shortened[b].known = known[b];
  build(shortened);
  cache_->add_columns(batch_);
}

}  // namespace hstu
