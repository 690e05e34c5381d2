#include "hstu/plan/largest_part.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/text.h"

namespace hstu {
namespace {

class Search {
 public:
  Search(const SampleBuilder& samples, const DivisionRule& rule, const ContextShare& context)
      : samples_(samples), rule_(rule), context_(context) {}

  void visit_step(std::span<const std::int64_t> positions) {
    const std::int64_t before = most_;
    std::int64_t parts = 0;
    BatchDivision pieces(positions, rule_, samples_);
    while (const auto piece = pieces.next()) {
      parts += piece->parts;
      const std::span ranks(piece->ranks);
      const auto group = static_cast<std::size_t>(context_.ranks);
      for (std::size_t r = 0; r < ranks.size(); r += group) visit_group(ranks.subspan(r, group));
    }
    if (most_ == before) return;
    largest_.parts = parts;
    largest_.batch.assign(positions.begin(), positions.end());
  }
  LargestPart take() { return std::move(largest_); }

 private:
  using Positions = std::span<const std::int64_t>;

  void visit_group(std::span<const SamplesOfRank> ranks) {
    std::vector<Positions> left;
    for (const SamplesOfRank& rank : ranks) left.emplace_back(rank.positions);
    while (!std::ranges::all_of(left, &Positions::empty)) {
      std::vector<Positions> parts;
      for (Positions& of_rank : left) {
        parts.push_back(first_part(samples_, of_rank, rule_.part_tokens));
        of_rank = of_rank.subspan(parts.back().size());
      }
      visit_parts(parts);
    }
  }

  // One of each rank of a group.
  void visit_parts(const std::vector<Positions>& parts) {
    std::vector<std::int64_t> tokens(parts.size(), 0);
    std::int64_t shared = 0;
    for (std::size_t r = 0; r < parts.size(); ++r)
      for (const std::int64_t position : parts[r]) {
        const std::int64_t n = samples_.most_tokens(position);
        (context_.ranks > 1 && n > context_.above ? shared : tokens[r]) += n;
      }
    for (std::size_t r = 0; r < parts.size(); ++r) {
      const std::int64_t all = tokens[r] + shared / context_.ranks;
      if (all <= most_) continue;
      most_ = all;
      largest_.positions.assign(parts[r].begin(), parts[r].end());
      largest_.group.clear();
      if (context_.ranks == 1) continue;
      for (const Positions& part : parts) largest_.group.emplace_back(part.begin(), part.end());
    }
  }

  const SampleBuilder& samples_;
  const DivisionRule& rule_;
  ContextShare context_;
  LargestPart largest_;
  std::int64_t most_ = -1;  // tokens
};

}  // namespace

LargestPart largest_part(BatchSchedule schedule, const SampleBuilder& samples, const DivisionRule& rule,
                         std::int64_t steps, const ContextShare& context) {
  constexpr std::int64_t kMostSamples = std::int64_t{1} << 20;
  Search search(samples, rule, context);
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
