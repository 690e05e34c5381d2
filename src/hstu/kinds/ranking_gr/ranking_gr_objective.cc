#include "hstu/kinds/ranking_gr/ranking_gr_objective.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hstu/base/contains.h"
#include "hstu/kinds/ranking_gr/ranking_gr_layout.h"
#include "hstu/loss/cross_entropy.h"
#include "hstu/objective/ranking_tally.h"

namespace hstu {
namespace {

std::vector<std::uint8_t> positives(const RankingGrConfig& config) {
  std::vector<std::uint8_t> flags;
  for (const std::string& name : config.labels) {
    const auto& wanted = config.positive_classes;
    flags.push_back(contains(wanted, name) ? 1 : 0);
  }
  return flags;
}

}  // namespace

RankingGrObjective::RankingGrObjective(RankingGrConfig config)
    : config_(std::move(config)), positive_(positives(config_)) {}

std::vector<std::string> RankingGrObjective::tasks() const {
  std::vector<std::string> names;
  if (is_multi_class()) names.emplace_back("positive");
  names.insert(names.end(), config_.labels.begin(), config_.labels.end());
  return names;
}

Examples RankingGrObjective::examples(const Batch& batch) const {
  const auto user = batch.values<std::int64_t>(ranking_gr::kExampleUser),
             position = batch.values<std::int64_t>(ranking_gr::kExampleAnchor),
             label = batch.values<std::int64_t>(ranking_gr::kExampleLabel);
  Examples rows{{user.begin(), user.end()}, {position.begin(), position.end()}, {}};
  const std::size_t outputs = config_.labels.size();
  rows.label.reserve(label.size() * (outputs + 1));
  for (const std::int64_t y : label) {
    if (is_multi_class()) rows.label.push_back(y < 0 ? 0 : positive_[static_cast<std::size_t>(y)]);
    for (std::size_t k = 0; k < outputs; ++k) {
      const bool is_set = is_multi_class() ? y == static_cast<std::int64_t>(k) : ((y >> k) & 1) != 0;
      rows.label.push_back(is_set ? 1 : 0);
    }
  }
  return rows;
}

double RankingGrObjective::probability(std::span<const float> logits, std::size_t task) const {
  if (!is_multi_class()) return 1 / (1 + std::exp(-static_cast<double>(logits[task])));
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0, wanted = 0;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    const double e = std::exp(static_cast<double>(logits[c]) - largest);
    sum += e;
    if (task == 0 ? positive_[c] != 0 : c + 1 == task) wanted += e;
  }
  return wanted / sum;
}

void RankingGrObjective::measure(const Tally& evaluation, const ListQuestion& question,
                                 EvaluationResult& result) const {
  RankingObjective::measure(evaluation, question, result);
  if (!is_multi_class()) return;
  const std::vector<RankingSamples>& samples = as_ranking(evaluation).samples();
  for (std::size_t i = 0; i < samples.front().labels().size(); ++i)
    if (std::all_of(samples.begin() + 1, samples.end(),
                    [i](const RankingSamples& of_class) { return of_class.labels()[i] == 0; }))
      ++result.unanswered["new_label"];
}

Variable RankingGrObjective::loss(const Pass& pass, const Variable& logits) const {
  const double factor = 1 / static_cast<double>(pass.batch.supervised);
  loss::RowLabels rows{pass.batch.tensor(ranking_gr::kExampleLabel)};
  if (pass.batch.has(ranking_gr::kExampleWeight))
    rows.weights = pass.batch.tensor(ranking_gr::kExampleWeight);
  return is_multi_class() ? loss::multi_class_cross_entropy(pass.tape, logits, rows, factor)
                          : loss::multi_task_cross_entropy(pass.tape, logits, rows, factor);
}

}  // namespace hstu
