// A trained model for candidates: the samples, batches and forward pass of an evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hstu/batching/sample_builder.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/dataset/dataset.h"
#include "hstu/experiment/learner.h"
#include "hstu/score/history_cache.h"
#include "hstu/score/replayed_passes.h"
#include "hstu/task/task.h"

namespace hstu {

class ForwardPass {
 public:
  // The model of `checkpoint`, without its optimizer's state, for histories from `dataset`, which must
  // outlive it. `task`: of the options and this dataset. `row_stable`: as Context has it. Throws Error if the
  // checkpoint does not fit.
  ForwardPass(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset, Task task,
              bool row_stable = false);

  // From now on keys of histories are kept between batches. Changes no bit of any output on the host; on a
  // GPU sums are divided differently. False where the model can keep none, where contexts are made of the
  // item, and on a GPU with a relative bias or row_stable.
  bool keep_histories(const HistoryCache::Limits& limits);
  // Null: none are kept.
  const HistoryCache* cache() const { return cache_ ? &*cache_ : nullptr; }

  // The model's outputs for the samples of the candidates, which the learner's stream computes; undefined if
  // they have no token. Valid until the next call.
  Tensor outputs(std::span<const Candidate> candidates);
  std::int64_t replays() const { return passes_.replays(); }  // replayed_passes.h
  // Of the latest call.
  const Batch& batch() const { return batch_; }
  const Samples& built() const { return built_; }

  const SampleBuilder& samples() const { return samples_; }
  Learner& learner() { return learner_; }
  const Learner& learner() const { return learner_; }

 private:
  void build(std::span<const Candidate> candidates);
  void build_unknown(std::span<const Candidate> candidates);

  const Dataset& dataset_;
  Task task_;  // its model and objective are moved to the learner
  SampleBuilder samples_;
  Learner learner_;
  std::optional<HistoryCache> cache_;
  ReplayedPasses passes_;
  // Reused from batch to batch.
  SampleScratch sample_scratch_;
  Samples built_;
  LayoutScratch layout_scratch_;
  Batch batch_;
};

// Fills the learner's parameters and tables from a checkpoint. Throws Error if they do not fit.
void load_model(const Checkpoint& checkpoint, Learner& learner);

}  // namespace hstu
