#include "hstu/baseline/baseline_file.h"

#include <optional>

#include "hstu/baseline/baseline.h"

namespace hstu {
namespace {

// Everything that the result depends on.
Json subject(const Dataset& dataset, const DataOptions& options, const Holdout& holdout,
             std::span<const std::int64_t> positions) {
  const BaselineOptions baseline;
  return {{"dataset", dataset.manifest().id},
          {"time_begin", holdout.time_begin},
          {"time_end", holdout.time_end},
          {"train_user_fraction", holdout.users.train_fraction},
          {"split_salt", holdout.users.salt},
          {"min_history", options.min_history},
          {"window_seconds", options.window_seconds},
          {"samples", positions.size()},
          {"user_prior", baseline.user_prior},
          {"item_prior", baseline.item_prior}};
}

std::optional<RankingMetrics> read(const Path& file, const Json& subject) {
  try {
    if (file.empty() || !std::filesystem::exists(file)) return std::nullopt;
    const Json json = Json::parse(read_file(file));
    if (json.at("of") != subject) return std::nullopt;
    return ranking_metrics_from_json(json.at("metrics"));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

RankingMetrics compute(const Dataset& dataset, const Holdout& holdout,
                       std::span<const std::int64_t> positions) {
  const std::uint8_t label = dataset.manifest().label_bit();
  const BaselineScores scores = score_baseline(dataset, holdout, positions);
  RankingSamples samples;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const bool positive = (dataset.action()[static_cast<std::size_t>(positions[i])] & label) != 0;
    samples.add(static_cast<float>(scores.probability[i]), positive, dataset.user_at(positions[i]));
  }
  return samples.metrics();
}

}  // namespace

RankingMetrics baseline_metrics(const Dataset& dataset, const DataOptions& options, const Holdout& holdout,
                                std::span<const std::int64_t> positions, const Path& file) {
  const Json of = subject(dataset, options, holdout, positions);
  if (const auto known = read(file, of)) return *known;
  const RankingMetrics metrics = compute(dataset, holdout, positions);
  try {
    if (!file.empty()) write_file(file, Json{{"of", of}, {"metrics", to_json(metrics)}}.dump(2) + "\n");
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): hstu eval on a run that is read-only, a full disk
  }
  return metrics;
}

}  // namespace hstu
