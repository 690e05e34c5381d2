#include "hstu/baseline/baseline_file.h"

#include <optional>
#include <vector>

#include "hstu/base/checksum.h"
#include "hstu/base/json_text.h"
#include "hstu/baseline/baseline.h"
#include "hstu/metrics/weighted.h"

namespace hstu {
namespace {

// All inputs of the result.
Json subject(const Dataset& dataset, const DataOptions& options, const Holdout& holdout,
             std::span<const std::int64_t> positions, bool weighted) {
  Json of{{"dataset", dataset.manifest().id},
          {"time_begin", holdout.time_begin},
          {"time_end", holdout.time_end},
          {"train_user_fraction", holdout.users.train_fraction},
          {"split_salt", holdout.users.salt},
          {"min_history", options.min_history},
          {"window_seconds", options.window_seconds},
          {"samples", positions.size()},
          {"ranked_by", "score"},
          {"user_prior", kUserPrior},
          {"item_prior", kItemPrior}};
  if (weighted) of["weighted"] = true;
  if (holdout.of_last()) of["last"] = holdout.last;
  if (holdout.scored_begin != nullptr) of["scored"] = "test";
  if (holdout.scored_end != nullptr) of["scored"] = "valid";
  return of;
}

std::string checksum_of(const Json& file) {
  return checksum(Json{{"of", file.at("of")}, {"metrics", file.at("metrics")}}.dump());
}

std::optional<Measures> read(const Path& file, const Json& subject) {
  try {
    if (file.empty() || !std::filesystem::exists(file)) return std::nullopt;
    const Json json = parse_json(read_file(file), file);
    // Another subject, or a file that was altered: computed again.
    if (json.at("of") != subject || json.at("checksum") != checksum_of(json)) return std::nullopt;
    return measures_from_json(json.at("metrics"));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// Ranks the samples by score. The probability is derived from the score minus the logit of the global rate at
// the sample's time, in single precision, and would order samples of different times differently.
Measures compute(const Dataset& dataset, const Holdout& holdout, std::span<const std::int64_t> positions,
                 bool weighted) {
  const BaselineScores scores = score_baseline(dataset, holdout, positions);
  const std::vector<float> probabilities(scores.probability.begin(), scores.probability.end());
  std::vector<std::uint8_t> labels;
  std::vector<std::int64_t> users;
  for (const std::int64_t position : positions) {
    const std::uint8_t action = dataset.action()[static_cast<std::size_t>(position)];
    labels.push_back((action & dataset.manifest().label_bit()) != 0 ? 1 : 0);
    users.push_back(dataset.user_at(position));
  }
  if (!weighted) return measures_of(ranking_metrics(scores.score, probabilities, labels, users));
  std::vector<float> weights;
  for (const std::int64_t position : positions) weights.push_back(dataset.weight(position));
  return measures_of(weighted_ranking_metrics(scores.score, probabilities, labels, users, weights));
}

}  // namespace

Measures baseline_metrics(const Dataset& dataset, const DataOptions& options, const Holdout& holdout,
                          std::span<const std::int64_t> positions, const Path& file, bool weighted) {
  const Json of = subject(dataset, options, holdout, positions, weighted);
  if (const auto known = read(file, of)) return *known;
  const Measures metrics = compute(dataset, holdout, positions, weighted);
  try {
    Json json{{"of", of}, {"metrics", to_json(metrics)}};
    json["checksum"] = checksum_of(json);
    if (!file.empty()) write_file(file, json.dump(2) + "\n");
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): hstu eval on a run that is read-only, a full disk
  }
  return metrics;
}

}  // namespace hstu
