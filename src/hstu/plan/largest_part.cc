#include "hstu/plan/largest_part.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/batching/loader.h"

namespace hstu {

namespace {

// The samples of each rank.
std::vector<std::vector<std::int64_t>> divided(std::span<const std::int64_t> piece,
                                               const SampleBuilder& samples, const DivideBatch& divide) {
  if (!divide) return {{piece.begin(), piece.end()}};
  std::vector<std::int64_t> tokens;
  for (const std::int64_t position : piece) tokens.push_back(samples.most_tokens(position));
  std::vector<std::vector<std::int64_t>> of_ranks;
  for (const auto& part : divide(tokens).parts) {
    std::vector<std::int64_t>& of_rank = of_ranks.emplace_back();
    for (const std::int32_t sample : part) of_rank.push_back(piece[static_cast<std::size_t>(sample)]);
  }
  return of_ranks;
}

}  // namespace

LargestPart largest_part(BatchSchedule schedule, const SampleBuilder& samples,
                         const TrainingSection& training, std::int64_t steps, const DivideBatch& divide) {
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
    const auto piece = static_cast<std::size_t>(training.batch_size);  // as in Loader
    for (std::span rest = job->positions; !rest.empty(); rest = rest.subspan(std::min(piece, rest.size()))) {
      for (const auto& of_rank : divided(rest.first(std::min(piece, rest.size())), samples, divide)) {
        for (std::span<const std::int64_t> left = of_rank; !left.empty();) {
          const std::span part = first_part(samples, left, training.micro_batch_tokens);
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
