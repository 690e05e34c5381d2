#include "hstu/training/evaluated_examples.h"

#include "hstu/base/threads.h"
#include "hstu/batching/batch_draws.h"

namespace hstu {

EvaluatedExamples evaluated_examples(const Dataset& dataset, const SampleBuilder& samples,
                                     std::span<const std::int64_t> positions, std::uint64_t seed) {
  const BatchDraws draws(seed);
  std::vector<std::vector<std::int64_t>> negatives(positions.size());
  if (samples.draws_negatives()) {
    constexpr std::int64_t kGrain = 64;
    parallel_blocks(std::ssize(positions), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
        samples.draw_negatives(draws, positions[i], negatives[i]);
    });
  }
  EvaluatedExamples examples;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::int64_t position = positions[i];
    const std::vector<std::int64_t>& drawn = negatives[i];
    examples.position.push_back(position);
    examples.item.push_back(dataset.item()[position]);
    examples.is_own.push_back(1);
    examples.position.insert(examples.position.end(), drawn.size(), position);
    examples.item.insert(examples.item.end(), drawn.begin(), drawn.end());
    examples.is_own.insert(examples.is_own.end(), drawn.size(), 0);
  }
  return examples;
}

}  // namespace hstu
