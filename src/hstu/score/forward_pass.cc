#include "hstu/score/forward_pass.h"

#include <utility>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/threads.h"
#include "hstu/device/device.h"
#include "hstu/embedding/table_section.h"
#include "hstu/experiment/device_choice.h"

namespace hstu {

namespace {

// The last item again, up to a multiple of so many: a GPU then replays the launches of batches that have not
// exactly as many different items. No token reads these rows.
void pad_items(Samples& samples) {
  constexpr std::size_t kItems = 128;
  if (samples.items.empty()) return;
  const std::size_t count = (samples.items.size() + kItems - 1) / kItems * kItems;
  samples.items.resize(count, samples.items.back());
  for (auto& values : samples.attributes) values.resize(count, values.back());
}

// Nothing reads the labels of a request's events.
Task without_labels(Task task) {
  task.evaluation.events.new_labels = NewLabels::of_none;
  return task;
}

}  // namespace

void load_model(const Checkpoint& checkpoint, Learner& learner) {
  std::vector<Section> sections = table_sections(learner.tables);
  sections.push_back(parameters_section(learner.model->parameters().all(), learner.compute.stream));
  for (const Section& section : sections) section.load(checkpoint.section(section.name));
}

ForwardPass::ForwardPass(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset,
                         Task task, bool row_stable)
    : task_(without_labels(std::move(task))),
      samples_(dataset, task_.evaluation),
      learner_(options, std::move(task_.model), std::move(task_.objective),
               open_device(choose_device(options).device)),
      sample_scratch_(samples_.scratch()) {
  for (int turn = 0; turn < 2; ++turn) turns_.emplace_back(learner_.compute.device());
  learner_.compute.row_stable = row_stable;
  load_model(checkpoint, learner_);
}

bool ForwardPass::keep_histories(const HistoryCache::Limits& limits) {
  const Context& compute = learner_.compute;
  const KeptTokens kept = learner_.model->kept_tokens();
  if (kept.layers == 0 || !samples_.shares_contexts()) return false;
  const bool half = !compute.device().is_host() && learner_.options.precision == Precision::bf16;
  cache_.emplace(kept, half ? DType::bf16 : DType::f32, limits, compute);
  return true;
}

Tensor ForwardPass::outputs(std::span<const Candidate> candidates) {
  const Clock::time_point begin = Clock::now();
  make_current(learner_.compute.device());  // of this thread, which may be another one than opened it
  turn_ = 1 - turn_;
  turns_[turn_].copied.synchronize();
  Batch& batch = turns_[turn_].batch;
  memory_ != nullptr ? build_requests(candidates, batch) : build(candidates, batch);
  batch.supervised = batch.samples;
  const Clock::time_point built = Clock::now();
  seconds_.batch += seconds_between(begin, built);
  if (batch.tokens == 0) return {};
  batch.copy_to(learner_.compute, batch_on_device_);
  turns_[turn_].copied.record(learner_.compute.stream);
  if (cache_) batch.history_keys = &cache_->keys(batch);
  Tensor outputs = passes_.outputs(learner_, batch);
  if (cache_) cache_->commit();
  seconds_.launches += seconds_since(built);
  return outputs;
}

void ForwardPass::build(std::span<const Candidate> candidates, Batch& batch) {
  samples_.build(candidates, built_, sample_scratch_);
  if (learner_.tables.are_on_gpu()) pad_items(built_);
  batch.clear();
  learner_.model->layout().lay_out(built_, layout_scratch_, batch);
}

// Selects before anything is copied: a history may be long, and the events of it whose keys are not known
// few.
void ForwardPass::build_requests(std::span<const Candidate> candidates, Batch& batch) {
  select_histories(candidates);
  const std::vector<std::int64_t> known = known_events(candidates);
  std::vector<Candidate> shortened(candidates.begin(), candidates.end());
  memory_->clear();
  for (std::size_t b = 0; b < shortened.size(); ++b) {
    const bool is_same = b > 0 && history_of_[b] == history_of_[b - 1] && known[b] == known[b - 1];
    shortened[b].known = known[b];
    shortened[b].before = is_same ? shortened[b - 1].before : memory_->add(history_of(b), known[b]);
  }
  memory_->show();
  sample_scratch_.gatherer.read(memory_->dataset().action());
  build(shortened, batch);
  if (cache_) cache_->add_columns(batch);
}

void ForwardPass::select_histories(std::span<const Candidate> candidates) {
  std::vector<const EventColumns*> all;
  history_of_.clear();
  for (const Candidate& candidate : candidates) {
    if (all.empty() || all.back() != candidate.events) all.push_back(candidate.events);
    history_of_.push_back(all.size() - 1);
  }
  if (histories_.size() < all.size()) histories_.resize(all.size());
  parallel_blocks(std::ssize(all), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto h = static_cast<std::size_t>(begin); h < static_cast<std::size_t>(end); ++h)
      histories_[h].select(*all[h], samples_.history_rule());
  });
}

// (B) of each history, the first events whose keys are known.
std::vector<std::int64_t> ForwardPass::known_events(std::span<const Candidate> candidates) {
  if (!cache_) return std::vector<std::int64_t>(candidates.size(), 0);
  std::vector<HistoryCache::History> histories;
  histories.reserve(candidates.size());
  for (std::size_t b = 0; b < candidates.size(); ++b)
    histories.push_back(
        {candidates[b].user, samples_.contexts_of(candidates[b]), samples_.tokens_of(history_of(b))});
  return cache_->begin(std::move(histories));
}

}  // namespace hstu
