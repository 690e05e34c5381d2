#include "hstu/experiment/evaluation_batches.h"

#include <algorithm>

namespace hstu {

std::vector<std::int64_t> held_out_positions(const RunOptions& options, const Anchors& anchors) {
  const std::int64_t limit = options.evaluation.max_samples;
  return anchors.evaluation.first(limit > 0 ? limit : anchors.evaluation.size());
}

std::vector<std::int64_t> window_positions(const RunOptions& options, const Anchors& anchors,
                                           std::int64_t window) {
  AnchorList::Window positions = anchors.training.window(window);
  const auto limit = static_cast<std::size_t>(options.evaluation.max_samples);
  if (limit > 0) positions = positions.first(std::min(limit, positions.size()));
  return {positions.begin(), positions.end()};
}

std::int64_t scored_batch_size(const RunOptions& options, const SampleBuilder& samples, int ranks) {
  const std::int64_t most = evaluation_batch_size(options);
  if (options.evaluation.negatives.from != NegativeSource::all) return most;
  return std::clamp<std::int64_t>(65'536 * ranks / (1 + samples.most_negatives()), 1, most);
}

LoaderOptions evaluation_loading(const RunOptions& options, int ranks, int rank) {
  LoaderOptions loading;
  loading.workers = static_cast<int>(options.data.workers);
  loading.division.part_tokens = options.training.micro_batch_tokens;
  loading.division.ranks = ranks;
  loading.rank = rank;
  loading.seed = options.seed;
  loading.fixed_draws = true;
  return loading;
}

}  // namespace hstu
