#include "hstu/score/scoring_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "hstu/options/options.h"

namespace hstu {

ScoringBatches::ScoringBatches(Scorer& scorer, const RunOptions& run, std::int64_t batch_size)
    : scorer_(scorer),
      batch_size_(batch_size > 0 ? batch_size : evaluation_batch_size(run)),
      batch_tokens_(run.training.micro_batch_tokens > 0 ? run.training.micro_batch_tokens
                                                        : batch_size_ * scorer.longest_sequence()) {}

void ScoringBatches::add(Candidate request, std::span<const std::int64_t> items, std::vector<float>& scores) {
  const std::size_t most = most_items(request);
  while (!items.empty()) {
    const std::size_t count = std::min(items.size(), most);
    request.item = items.front();
    request.others = items.subspan(1, count - 1);
    items = items.subspan(count);
    const std::int64_t tokens = scorer_.most_tokens(request);
    if (std::ssize(batch_) == batch_size_ || tokens_ + tokens > batch_tokens_) begin();
    batch_.push_back(request);
    scores_.push_back(&scores);
    tokens_ += tokens;
  }
}

// Items of a request that share its history in one batch, at least one. `candidate`: any one of them.
std::size_t ScoringBatches::most_items(const Candidate& candidate) const {
  if (!scorer_.shares_histories()) return 1;
  const std::int64_t left = std::max<std::int64_t>(0, batch_tokens_ - scorer_.most_tokens(candidate));
  return static_cast<std::size_t>(1 + left / scorer_.tokens_of_item());
}

// The scores of the batch before are read while the device computes this one.
void ScoringBatches::begin() {
  if (batch_.empty()) return;
  Given given{.scores = scorer_.begin(batch_), .counts = {}, .to = std::move(scores_)};
  for (const Candidate& candidate : batch_)
    given.counts.push_back((1 + candidate.others.size()) * scorer_.tasks().size());
  given_.push_back(std::move(given));
  batch_.clear();
  scores_.clear();
  tokens_ = 0;
  if (given_.size() > 1) finish_first();
}

void ScoringBatches::finish_first() {
  const Given given = std::move(given_.front());
  given_.pop_front();
  const std::vector<float> scores = scorer_.finish(given.scores);
  auto from = scores.begin();
  for (std::size_t b = 0; b < given.to.size(); ++b) {
    const auto count = static_cast<std::ptrdiff_t>(given.counts[b]);
    given.to[b]->insert(given.to[b]->end(), from, from + count);
    from += count;
  }
}

void ScoringBatches::flush() {
  begin();
  while (!given_.empty()) finish_first();
}

std::vector<std::size_t> order_of(std::span<const float> scores, std::size_t tasks, std::size_t task,
                                  std::int64_t top) {
  std::vector<std::size_t> order(scores.size() / tasks);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (top == 0) return order;
  const std::int64_t kept = std::min(std::ssize(order), top);
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), [&](std::size_t a, std::size_t b) {
    const float x = scores[a * tasks + task], y = scores[b * tasks + task];
    return x != y ? x > y : a < b;
  });
  order.resize(static_cast<std::size_t>(kept));
  return order;
}

}  // namespace hstu
