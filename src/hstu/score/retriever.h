// Finds items for users with a trained model of kind retrieval.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hstu/objective/catalogue_blocks.h"
#include "hstu/objective/catalogue_ranks.h"
#include "hstu/objective/list_objective.h"
#include "hstu/score/forward_pass.h"

namespace hstu {

class Retriever {
 public:
  // As ForwardPass. `dataset` has the events of users. The catalogue has all items of the checkpoint's table
  // and of the dataset `items`. UsageError for a model that scores candidates.
  Retriever(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset,
            const Dataset& items, Task task, bool row_stable = false);

  // A user at a time, with the events before it.
  struct User {
    std::int64_t user = 0, time = 0;  // original id; seconds
    UserEvents before;
    const EventColumns* events = nullptr;  // as Candidate::events
    // Of a model that finds lists: a list has none of the seen items, which ascend, and `top` others where
    // there are so many; 0: those that the model's beam finds.
    std::span<const std::int64_t> seen = {};
    std::int64_t top = 0;
  };
  using List = std::vector<kernels::ScoredItem>;
  // Of those of `users` that have a history, all in one batch.
  struct Answers {
    std::vector<float> vectors;      // (R, E), or
    std::vector<List> lists;         // (R)
    std::vector<std::int64_t> user;  // (R) index into `users`, ascending
  };
  // What a user gets depends on that user alone.
  Answers answers(std::span<const User> users);

  // (Q) the first k items, or all of fewer, that are not excluded, of queries with vectors of answers(). The
  // first call prepares the catalogue (CatalogueBlocks), for all. Throws NotFiniteError.
  std::vector<List> top(const CatalogueQueryList& queries, std::int64_t k);

  // Whether the model has vectors, which are compared with those of items; false: it finds lists.
  bool compares_vectors() const { return lists_ == nullptr; }
  ForwardPass& pass() { return pass_; }
  const BadIds& bad_ids() const { return bad_ids_; }  // of all histories
  const CatalogueScores& catalogue() const { return catalogue_; }
  std::int64_t width() const { return catalogue_.rows.width; }       // E
  const std::vector<std::int64_t>& items() const { return items_; }  // (V) ascending
  // Whether the model knows the item: by a row of its table, or in its lists.
  bool is_trained(std::int64_t item) const;
  std::vector<float> item_vectors();  // (V, E) as they are compared

 private:
  // The values of the dataset's context columns, of the user's latest event; 0 where the model reads none.
  std::vector<std::int64_t> contexts_of(const User& user) const;
  // Of those that have a history: (R) their indices, and (R, width of the outputs).
  std::pair<std::vector<std::int64_t>, Tensor> outputs_of(std::span<const User> users);
  Answers lists_of(std::span<const User> users);
  bool is_short(const List& list, const User& user) const;

  const Dataset& dataset_;
  std::vector<bool> needed_;  // by context column
  ForwardPass pass_;
  BadIds bad_ids_;
  ListObjective* lists_;  // null: vectors are compared
  std::vector<std::int64_t> items_;
  CatalogueScores catalogue_;
  std::optional<CatalogueBlocks> blocks_;  // absent with lists_
};

}  // namespace hstu
