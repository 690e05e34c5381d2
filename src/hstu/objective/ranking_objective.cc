#include "hstu/objective/ranking_objective.h"

#include <algorithm>
#include <cmath>

#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/metrics/list_metrics.h"
#include "hstu/metrics/weighted.h"
#include "hstu/objective/ranking_running_metrics.h"
#include "hstu/objective/ranking_tally.h"

namespace hstu {
namespace {

// (examples) Empty: metrics have no weights.
std::vector<float> weights_of(const ListQuestion& question) {
  std::vector<float> weights;
  if (!question.weight) return weights;
  for (const std::int64_t position : question.positions) weights.push_back(question.weight(position));
  return weights;
}

// Why metrics have no value, by metric.
void explain(const RankingMetrics& metrics, EvaluationResult& result) {
  const bool one_class = metrics.n_pos == 0 || metrics.n_pos == metrics.n;
  std::string why;
  if (metrics.n == 0) {
    why = "there is no sample";
  } else if (metrics.n_pos == 0) {
    why = fmt::format("none of {} samples is positive", metrics.n);
  } else if (one_class) {
    why = fmt::format(
        "all {} samples are positive: evaluation.negatives = 100 draws items to rank them against",
        metrics.n);
  } else {
    why = "no user has samples of both labels";
  }
  if (!one_class && !metrics.auc) why = "the samples of one label have the weight 0";
  for (const char* const metric : {"auc", "ne"})
    if (one_class || !metrics.auc) result.undefined[metric] = why;
  for (const char* const metric : {"gauc", "gauc_mean"})
    if (metrics.n_groups == 0) result.undefined[metric] = why;
  const bool no_list =
      !result.lists.empty() && std::ranges::none_of(result.lists.all(), [&](const auto& measure) {
        return result.lists.find(measure.first).has_value();
      });
  if (no_list) result.undefined["lists"] = one_class ? why : "no list has samples of both labels";
}

}  // namespace

std::vector<float> RankingObjective::probabilities(const Tensor& logits, const Examples& examples,
                                                   const Stream& stream, std::size_t tasks,
                                                   std::string_view place) const {
  const std::size_t rows = examples.user.size();
  std::vector<float> probabilities;
  if (rows == 0) return probabilities;
  probabilities.reserve(rows * tasks);
  const Tensor on_host = logits.to_host(stream);
  const std::size_t outputs = static_cast<std::size_t>(on_host.size()) / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span row(on_host.data<float>() + r * outputs, outputs);
    for (const float z : row) {
      if (!std::isfinite(z)) {
        throw NotFiniteError(fmt::format("the score of user {} at {} {} is {}", examples.user[r], place,
                                         examples.position[r], z));
      }
    }
    for (std::size_t k = 0; k < tasks; ++k) probabilities.push_back(static_cast<float>(probability(row, k)));
  }
  return probabilities;
}

std::unique_ptr<Tally> RankingObjective::step_tally() const {
  return std::make_unique<RankingTally>(*this, 1);
}

std::unique_ptr<Tally> RankingObjective::evaluation_tally(const EvaluationSource& /*source*/) const {
  return std::make_unique<RankingTally>(*this, tasks().size());
}

std::unique_ptr<RunningMetrics> RankingObjective::running_metrics(std::int64_t window_samples) const {
  return std::make_unique<RankingRunningMetrics>(window_samples);
}

void RankingObjective::measure(const Tally& evaluation, const ListQuestion& question,
                               EvaluationResult& result) const {
  const std::vector<RankingSamples>& samples = as_ranking(evaluation).samples();
  const RankingSamples& first = samples.front();
  const std::vector<float> weights = weights_of(question);
  const auto measured = [&](const RankingSamples& of) {
    if (!question.weight) return of.metrics();
    const std::vector<double> scores(of.probabilities().begin(), of.probabilities().end());
    return weighted_ranking_metrics(scores, of.probabilities(), of.labels(), of.groups(), weights);
  };
  const RankingMetrics metrics = measured(first);
  result.model = measures_of(metrics);
  LifetimeMetrics estimate;
  estimate.add(first);
  result.estimate.add("auc_binned", estimate.auc.value());
  const std::vector<std::string> names = tasks();
  for (std::size_t k = 0; names.size() > 1 && k < names.size(); ++k)
    result.tasks[names[k]] = measures_of(measured(samples[k]));
  if (!question.cutoffs.empty()) {
    for (const auto& [name, value] :
         list_metrics(first.probabilities(), first.labels(), question.lists, question.cutoffs, weights))
      result.lists.add(name, value);
  }
  explain(metrics, result);
}

void RankingObjective::write_predictions(const Tally& evaluation, const Path& folder) const {
  const std::vector<RankingSamples>& samples = as_ranking(evaluation).samples();
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const std::string suffix = k == 0 ? "" : fmt::format("_{}", k);
    write_npy(folder / ("label" + suffix + ".npy"), samples[k].labels());
    write_npy(folder / ("score" + suffix + ".npy"), samples[k].probabilities());
  }
}

}  // namespace hstu
