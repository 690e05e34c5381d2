// Finds items for users with a trained model: the samples, batches and forward pass of an evaluation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/sample_builder.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/dataset/dataset.h"
#include "hstu/experiment/learner.h"
#include "hstu/objective/catalogue_ranks.h"
#include "hstu/objective/list_objective.h"
#include "hstu/task/task.h"

namespace hstu {

class Retriever {
 public:
  // As Scorer's. The catalogue has all items of the checkpoint's table and of `dataset`. UsageError for a
  // model that scores candidates.
  Retriever(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset, Task task);

  // A user at a time, with the events before it.
  struct User {
    std::int64_t user = 0, time = 0;  // original id; seconds
    UserEvents before;
  };
  // Vectors of those of `users` that have a history, all in one batch.
  struct Vectors {
    std::vector<float> values;       // (R, E)
    std::vector<std::int64_t> user;  // (R) index into `users`, ascending
  };
  Vectors vectors(std::span<const User> users);

  // (Q) the first k items that are not excluded, of queries with vectors of vectors(). Throws NotFiniteError.
  std::vector<std::vector<kernels::ScoredItem>> top(const CatalogueQueryList& queries, std::int64_t k) const;

  // Whether vectors are compared with those of items; false: a vector is a list that the model has found.
  bool compares_vectors() const { return lists_ == nullptr; }
  const CatalogueScores& catalogue() const { return catalogue_; }
  std::int64_t width() const { return catalogue_.rows.width; }       // E
  const std::vector<std::int64_t>& items() const { return items_; }  // (V) ascending
  std::vector<float> item_vectors();                                 // (V, E) as they are compared

 private:
  Task task_;  // its model and objective are moved to the learner
  SampleBuilder samples_;
  Learner learner_;
  const ListObjective* lists_;  // null: vectors are compared
  std::vector<std::int64_t> items_;
  CatalogueScores catalogue_;
  // Reused from batch to batch.
  SampleScratch sample_scratch_;
  Samples built_;
  LayoutScratch layout_scratch_;
  Batch batch_;
};

}  // namespace hstu
