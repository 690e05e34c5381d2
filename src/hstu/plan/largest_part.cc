#include "hstu/plan/largest_part.h"

#include <span>

#include <fmt/format.h>

#include "hstu/base/text.h"

namespace hstu {

LargestPart largest_part(BatchSchedule schedule, const SampleBuilder& samples, const DivisionRule& rule,
                         std::int64_t steps) {
  constexpr std::int64_t kMostSamples = std::int64_t{1} << 20;
  LargestPart largest;
  std::int64_t most = -1, batches = 0, visited = 0;
  bool all = false;
  while (batches < steps && visited < kMostSamples) {
    const auto job = schedule.next();
    all = !job;
    if (all) break;
    ++batches;
    visited += static_cast<std::int64_t>(job->positions.size());
    BatchDivision pieces(job->positions, rule, samples);
    while (const auto piece = pieces.next()) {
      for (const SamplesOfRank& of_rank : piece->ranks) {
        for (std::span<const std::int64_t> left = of_rank.positions; !left.empty();) {
          const std::span part = first_part(samples, left, rule.part_tokens);
          left = left.subspan(part.size());
          std::int64_t tokens = 0;
          for (const std::int64_t position : part) tokens += samples.most_tokens(position);
          if (tokens <= most) continue;
          most = tokens;
          largest.positions.assign(part.begin(), part.end());
        }
      }
    }
  }
  largest.source = all || batches == steps
                       ? fmt::format("the largest of all {} batches", with_separators(batches))
                       : fmt::format("the largest of the first {} batches", with_separators(batches));
  return largest;
}

}  // namespace hstu
