#include "hstu/training/largest_part.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/batching/loader.h"

namespace hstu {

LargestPart largest_part(BatchSchedule schedule, const SampleBuilder& samples,
                         const TrainingSection& training, std::int64_t steps) {
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
    std::int64_t piece_left = training.batch_size;  // samples, as in Loader
    for (std::span rest = job->positions; !rest.empty();) {
      const std::span piece = rest.first(std::min(rest.size(), static_cast<std::size_t>(piece_left)));
      const std::span part = first_part(samples, piece, training.micro_batch_tokens);
      rest = rest.subspan(part.size());
      piece_left -= static_cast<std::int64_t>(part.size());
      if (piece_left == 0) piece_left = training.batch_size;
      std::int64_t tokens = 0;
      for (const std::int64_t position : part) tokens += samples.most_tokens(position);
      if (tokens <= most) continue;
      most = tokens;
      largest.positions.assign(part.begin(), part.end());
    }
  }
  largest.source = all || batches == steps
                       ? fmt::format("the largest of all {} batches", with_separators(batches))
                       : fmt::format("the largest of the first {} batches", with_separators(batches));
  return largest;
}

}  // namespace hstu
