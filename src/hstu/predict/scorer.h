// Scores candidates with a trained model: the samples, batches and forward pass of an evaluation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hstu/batching/sample_builder.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/dataset/dataset.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/experiment/learner.h"
#include "hstu/task/task.h"

namespace hstu {

class Scorer {
 public:
  // The model of `checkpoint`, without its optimizer's state, for histories from `dataset`, which must
  // outlive it. `task`: of the options and this dataset. Throws Error if the checkpoint does not fit.
  Scorer(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset, Task task);

  // (items, tasks) probabilities of each candidate's item and its others, row by row; all in one batch.
  std::vector<float> score(std::span<const Candidate> candidates);
  // Whether the items of a request may share its history (Candidate::others).
  bool shares_histories() const { return learner_.model->shares_histories() && samples_.shares_contexts(); }
  // An upper bound of the tokens of any sample of one item.
  std::int64_t longest_sequence() const { return samples_.longest_sequence(); }
  // That one more of Candidate::others adds to a sample.
  std::int64_t tokens_of_item() const { return samples_.tokens_of_item(); }
  // An upper bound of the tokens of a candidate's sample.
  std::int64_t most_tokens(const Candidate& candidate) const { return samples_.most_tokens(candidate); }

  const std::vector<std::string>& tasks() const { return tasks_; }
  const BadIds& bad_ids() const { return bad_ids_; }
  // Items that training has seen, ascending.
  const std::vector<std::int64_t>& trained_items() const { return trained_items_; }
  bool is_trained(std::int64_t item) const;

 private:
  Task task_;  // its model and objective are moved to the learner
  SampleBuilder samples_;
  Learner learner_;
  std::vector<std::string> tasks_;
  BadIds bad_ids_;
  std::vector<std::int64_t> trained_items_;
  // Reused from batch to batch.
  SampleScratch sample_scratch_;
  Samples built_;
  LayoutScratch layout_scratch_;
  Batch batch_;
};

// Fills the learner's parameters and tables from a checkpoint. Throws Error if they do not fit.
void load_model(const Checkpoint& checkpoint, Learner& learner);

}  // namespace hstu
