#include "hstu/plan/largest_part.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/text.h"

namespace hstu {
namespace {

class Search {
 public:
  Search(const SampleBuilder& samples, const DivisionRule& rule) : samples_(samples), rule_(rule) {}

  void visit_step(std::span<const std::int64_t> positions) {
    const std::int64_t before = most_;
    std::int64_t parts = 0;
    BatchDivision pieces(positions, rule_, samples_);
    while (const auto piece = pieces.next()) {
      parts += piece->parts;
      for (const SamplesOfRank& of_rank : piece->ranks) visit_rank(of_rank.positions);
    }
    if (most_ > before) largest_.parts = parts;
  }
  LargestPart take() { return std::move(largest_); }

 private:
  void visit_rank(std::span<const std::int64_t> left) {
    while (!left.empty()) {
      const std::span part = first_part(samples_, left, rule_.part_tokens);
      left = left.subspan(part.size());
      std::int64_t tokens = 0;
      for (const std::int64_t position : part) tokens += samples_.most_tokens(position);
      if (tokens <= most_) continue;
      most_ = tokens;
      largest_.positions.assign(part.begin(), part.end());
    }
  }

  const SampleBuilder& samples_;
  const DivisionRule& rule_;
  LargestPart largest_;
  std::int64_t most_ = -1;  // tokens
};

}  // namespace

LargestPart largest_part(BatchSchedule schedule, const SampleBuilder& samples, const DivisionRule& rule,
                         std::int64_t steps) {
  constexpr std::int64_t kMostSamples = std::int64_t{1} << 20;
  Search search(samples, rule);
  std::int64_t batches = 0, visited = 0;
  bool all = false;
  while (batches < steps && visited < kMostSamples) {
    const auto job = schedule.next();
    all = !job;
    if (all) break;
    ++batches;
    visited += static_cast<std::int64_t>(job->positions.size());
    search.visit_step(job->positions);
  }
  LargestPart largest = search.take();
  largest.source = all || batches == steps
                       ? fmt::format("the largest of all {} batches", with_separators(batches))
                       : fmt::format("the largest of the first {} batches", with_separators(batches));
  return largest;
}

}  // namespace hstu
