// Divides the items of requests into batches of a scorer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "hstu/score/scorer.h"

namespace hstu {

class ScoringBatches {
 public:
  // `batch_size`: samples of a batch; 0: as in evaluations of the run. No score depends on it.
  ScoringBatches(Scorer& scorer, const RunOptions& run, std::int64_t batch_size);

  // Appends (items, tasks) scores of `items` to `scores`, in this call, a later one or flush(). `request`:
  // the candidate of any of the items. What it and `items` refer to, and `scores`, must stay until then.
  void add(Candidate request, std::span<const std::int64_t> items, std::vector<float>& scores);
  // Gives the device what was added. What requests and items refer to is not read any more.
  void begin();
  // Whether flush() need not wait.
  bool is_computed() const {
    return batch_.empty() && (given_.empty() || given_.back().scores.computed.reached());
  }
  void flush();

 private:
  struct Given {  // to the device
    Scorer::Begun scores;
    std::vector<std::size_t> counts;      // scores of each candidate
    std::vector<std::vector<float>*> to;  // where they are appended
  };
  std::size_t most_items(const Candidate& candidate) const;
  void finish_first();

  Scorer& scorer_;
  std::int64_t batch_size_, batch_tokens_;
  std::vector<Candidate> batch_;
  std::vector<std::vector<float>*> scores_;  // of each candidate of the batch
  std::int64_t tokens_ = 0;
  std::deque<Given> given_;
};

// Indices of the `top` highest scores of `task` in descending order, of equal scores the earlier first;
// scores (items, tasks). top = 0: all indices in ascending order.
std::vector<std::size_t> order_of(std::span<const float> scores, std::size_t tasks, std::size_t task,
                                  std::int64_t top);

}  // namespace hstu
