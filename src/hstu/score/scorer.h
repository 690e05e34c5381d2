// Scores candidates with a trained model that ranks.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "hstu/device/stream.h"
#include "hstu/objective/ranking_objective.h"
#include "hstu/score/forward_pass.h"

namespace hstu {

class Scorer {
 public:
  // As ForwardPass. UsageError for a model that does not score candidates.
  Scorer(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset, Task task,
         bool row_stable = false);

  // Scores that the device computes while the host does other work.
  struct Begun {
    Tensor logits;  // in host memory, when `computed` is reached
    Event computed;
    Examples examples;
  };
  // Of each candidate's item and its others; all in one batch.
  Begun begin(std::span<const Candidate> candidates);
  // (items, tasks) probabilities, row by row. Waits for them.
  std::vector<float> finish(const Begun& begun);
  // Whether the items of a request may share its history (Candidate::others).
  bool shares_histories() const {
    return pass_.learner().model->shares_histories() && pass_.samples().shares_contexts();
  }
  // An upper bound of the tokens of any sample of one item.
  std::int64_t longest_sequence() const { return pass_.samples().longest_sequence(); }
  // That one more of Candidate::others adds to a sample.
  std::int64_t tokens_of_item() const { return pass_.samples().tokens_of_item(); }
  // An upper bound of the tokens of a candidate's sample.
  std::int64_t most_tokens(const Candidate& candidate) const {
    return pass_.samples().most_tokens(candidate);
  }

  ForwardPass& pass() { return pass_; }
  const std::vector<std::string>& tasks() const { return tasks_; }
  const BadIds& bad_ids() const { return bad_ids_; }
  // Items that training has seen, ascending.
  const std::vector<std::int64_t>& trained_items() const { return trained_items_; }
  bool is_trained(std::int64_t item) const;

 private:
  ForwardPass pass_;
  std::pmr::unsynchronized_pool_resource downloads_;  // of page-locked memory
  std::vector<std::string> tasks_;
  BadIds bad_ids_;
  std::vector<std::int64_t> trained_items_;
};

}  // namespace hstu
