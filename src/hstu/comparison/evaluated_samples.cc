#include "hstu/comparison/evaluated_samples.h"

#include <algorithm>
#include <vector>

#include "hstu/base/contains.h"
#include "hstu/comparison/run_outcome.h"
#include "hstu/task/kind.h"

namespace hstu {
namespace {

constexpr std::string_view kOfHoldout[] = {"data.min_history",
                                           "evaluation.holdout_windows",
                                           "evaluation.holdout_first_window",
                                           "evaluation.holdout_fraction",
                                           "evaluation.holdout_seconds",
                                           "evaluation.holdout_last",
                                           "evaluation.split",
                                           "evaluation.train_user_fraction",
                                           "evaluation.split_salt",
                                           "evaluation.next_window",
                                           "evaluation.max_samples",
                                           "evaluation.ranking_list",
                                           "evaluation.weighted"};
constexpr std::string_view kOfNegatives[] = {"evaluation.negatives", "evaluation.negatives_from",
                                             "data.negatives.exclude_seen"};
// Of kinds of models: other labels, or other items that a target is ranked among.
constexpr std::string_view kOfModel[] = {"model.labels", "model.label_column", "model.positive_classes",
                                         "model.exclude_seen"};

constexpr std::size_t kMostNames = 3;

// "a, b, c, ..."
std::string some_of(const std::vector<std::string>& names) {
  const auto first = std::span(names).first(std::min(names.size(), kMostNames));
  return fmt::format("{}{}", fmt::join(first, ", "), names.size() > kMostNames ? ", ..." : "");
}

}  // namespace

ConfigFlattener::Values evaluated_samples(const RunOptions& options, const std::string& dataset) {
  ConfigFlattener::Values samples{{"data.path", dataset}};
  const HoldoutOptions& holdout = options.evaluation.holdout;
  const bool by_window = holdout.windows > 0 || holdout.first_window >= 0 || options.evaluation.next_window;
  const bool among_all = options.model.kind().samples_are_users,
             draws = !among_all && options.evaluation.negatives.per_positive > 0;
  samples.emplace_back("model.kind", among_all ? "all items" : "");
  for (const auto& [key, value] : config_values(options)) {
    const bool counts = contains(std::span(kOfHoldout), key) ||
                        (draws && contains(std::span(kOfNegatives), key)) ||
                        (by_window && key == "data.window_seconds") ||
                        (contains(std::span(kOfModel), key) && value != "[]" && value != "\"\"");
    if (counts) samples.emplace_back(key, value);
  }
  return samples;
}

std::string note_on_samples(std::span<const ComparedRun> runs) {
  std::vector<std::vector<std::string>> groups;
  std::vector<const ComparedRun*> firsts;
  std::vector<std::string> keys;
  for (const ComparedRun& run : runs) {
    const auto same = std::find_if(firsts.begin(), firsts.end(),
                                   [&](const ComparedRun* first) { return first->samples == run.samples; });
    if (same != firsts.end()) {
      groups[static_cast<std::size_t>(same - firsts.begin())].push_back(run.run.name);
      continue;
    }
    groups.push_back({run.run.name});
    firsts.push_back(&run);
    for (const ConfigDifference& difference : differences(firsts.front()->samples, run.samples))
      if (!contains(keys, difference.key)) keys.push_back(difference.key);
  }
  if (groups.size() < 2) return "";
  std::vector<std::string> names;
  for (const auto& group : groups) names.push_back(group.size() == 1 ? group[0] : "(" + some_of(group) + ")");
  return fmt::format("{} are evaluated on other samples ({}): their metrics are not to be compared",
                     fmt::join(names, " and "), some_of(keys));
}

}  // namespace hstu
