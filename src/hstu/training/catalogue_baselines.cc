#include "hstu/training/catalogue_baselines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hstu/base/text.h"
#include "hstu/baseline/next_item.h"
#include "hstu/metrics/rank_metrics.h"

namespace hstu {

CatalogueBaselines catalogue_baselines(const Experiment& experiment, const Holdout& holdout,
                                       std::span<const std::int64_t> positions) {
  const RunOptions& options = experiment.options();
  CatalogueBaselines found;
  const NextItemBaselines baselines(experiment.dataset(), holdout, experiment.evaluation_samples(), positions,
                                    experiment.catalogue());
  const std::int64_t seen =
      experiment.learner().objective->excluded_events(options.data.options.history_length);
  std::vector<float> weights;
  for (const std::int64_t position : positions)
    if (options.evaluation.weighted) weights.push_back(experiment.dataset().weight(position));
  for (const auto& [word, rule] : kNextItemRules)
    found.measures[std::string(word)] =
        rank_metrics(baselines.ranks(rule, positions, seen), options.evaluation.ranking_k, weights);
  // The latest item is then a candidate of no sample, unless it is asked for.
  if (seen > 0 && found.measures.at("last") == found.measures.at("popularity")) {
    found.measures.erase("last");
    found.left_out["last"] =
        "the same as popularity, because items of the history are left out (model.exclude_seen)";
  }
  found.counts.assign(baselines.counts().begin(), baselines.counts().end());
  return found;
}

std::vector<std::string> notes_on_ranks(const EvaluationResult& result) {
  std::vector<std::string> notes;
  const std::string all = with_separators(result.model.count("n"));
  const std::map<std::string_view, std::string_view> words{
      {"no_history", "have no earlier event that the model reads, and count as not found"},
      {"new_item", "ask for an item that the model does not have, and count as not found"},
      {"new_label", "have a label that is no class of the model, and count as of none"}};
  for (const auto& [why, count] : result.unanswered)
    notes.push_back(fmt::format("{} of {} samples {}", with_separators(count), all, words.at(why)));
  const auto repeated = result.parts.find("repeated");
  if (repeated == result.parts.end()) return notes;
  const auto hit_rate = [&](const char* part) { return result.parts.at(part).find("hr@10").value_or(0); };
  notes.push_back(fmt::format(
      "{} of {} targets are items that the user has had: HR@10 is {:.4f} in lists of all items "
      "(with_seen) and {:.4f} in lists without these (without_seen, predict --exclude-seen)",
      with_separators(repeated->second.count("n")), all, hit_rate("with_seen"), hit_rate("without_seen")));
  return notes;
}

std::string better_baselines(const EvaluationResult& result, MetricSpecs specs) {
  const MetricSpec& headline = specs.front();
  const std::optional<double> model = result.find(headline.name);
  if (!model) return "";
  std::vector<std::string> better;
  bool has_names = false;
  const auto compare = [&](const std::string& name, const std::optional<double>& value) {
    if (value && headline.improves(*value, *model))
      better.push_back(fmt::format("{} ({:.4f})", name, *value));
  };
  for (const auto& [name, measures] : result.item_baselines) {
    const std::optional<double> value = measures.find(headline.name);
    has_names = has_names || value;
    compare(name, value);
  }
  if (!has_names) compare("the baseline", result.baseline.find(headline.name));
  if (better.empty()) return "";
  return fmt::format(
      "the model's {} of {:.4f} is worse than that of {}, without a model: train longer, or look at the "
      "learning rate and the size of the model",
      headline.title, *model, fmt::join(better, " and "));
}

}  // namespace hstu
