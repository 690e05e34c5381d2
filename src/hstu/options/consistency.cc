#include <string>
#include <vector>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/metrics/metric_spec.h"
#include "hstu/options/options.h"
#include "hstu/task/kind.h"

namespace hstu {
namespace {

const MetricSpec& known_best(MetricSpecs metrics, const std::string& best) {
  try {
    return known_metric(metrics, best);
  } catch (const UsageError& error) {
    fail_usage("checkpoint.best: {}", error.what());
  }
}

// The metric of the best checkpoint and of patience is measured, and more than once.
void check_best(const RunOptions& o, bool held_out) {
  const std::string& best = o.checkpoint.best;
  const MetricSpecs metrics = o.model.metrics();
  if (best.empty()) {
    if (o.evaluation.patience > 0)
      fail_usage("evaluation.patience = {} needs a metric: set checkpoint.best = \"{}\"",
                 o.evaluation.patience, metrics.front().name);
    return;
  }
  const MetricSpec& metric = known_best(metrics, best);
  if (!held_out)
    fail_usage("checkpoint.best = \"{}\", but nothing is held out: set evaluation.holdout_fraction", best);
  const std::vector<std::int64_t>& cutoffs = o.evaluation.ranking_k;
  const auto k = cutoff_of(best);
  const bool is_measured =
      metric.has_cutoff ? contains(cutoffs, k.value_or(0)) : !metric.of_lists || !cutoffs.empty();
  if (!is_measured)
    fail_usage("checkpoint.best = \"{}\" is not measured: set evaluation.ranking_k = [{}]", best,
               k.value_or(10));
}

// Refuses what contradicts evaluation.next_window.
void check_next_window(const RunOptions& o) {
  const EvaluationSection& e = o.evaluation;
  const HoldoutOptions& h = e.holdout;
  const auto refuse = [](bool is_set, const char* key, const char* why) {
    if (is_set) fail_usage("evaluation.next_window = true and {} contradict each other: {}", key, why);
  };
  const char* const once = "the samples of the next window are trained after they were scored; set one";
  refuse(h.windows > 0, "evaluation.holdout_windows", once);
  refuse(h.first_window >= 0, "evaluation.holdout_first_window", once);
  refuse(h.fraction > 0, "evaluation.holdout_fraction", once);
  refuse(h.seconds > 0, "evaluation.holdout_seconds", once);
  refuse(h.last > 0, "evaluation.holdout_last", once);
  refuse(h.split != LastSplit::none, "evaluation.split", once);
  refuse(h.train_user_fraction < 1, "evaluation.train_user_fraction", once);
  const char* const each = "it evaluates before each window; set one";
  refuse(e.every_windows > 0, "evaluation.every_windows", each);
  refuse(e.every_data_fraction > 0, "evaluation.every_data_fraction", each);
  refuse(e.skip_until_fraction > 0, "evaluation.skip_until_fraction", each);
  const char* const others = "two evaluations are of different samples, so that neither is the better one";
  refuse(!o.checkpoint.best.empty(), "checkpoint.best", others);
  refuse(e.patience > 0, "evaluation.patience", others);
}

// Every feature has a table of its own, which has its name, also in checkpoints.
void check_feature_names(const FeaturesSection& features) {
  std::vector<std::string> taken = {"item"};
  const auto take = [&](const std::string& name, const char* list) {
    if (!is_plain_name(name)) fail_usage("{}: expected {}, found \"{}\"", list, kPlainName, name);
    if (contains(taken, name))
      fail_usage("{}: the name \"{}\" is taken by another table: use another name", list, name);
    taken.push_back(name);
  };
  for (const AttributeSection& attribute : features.attributes) take(attribute.name, "features.attributes");
  for (const ContextualFeature& feature : features.context) take(feature.name, "features.context");
}

}  // namespace

void check_consistency(const RunOptions& o) {
  check_feature_names(o.features);
  const HoldoutOptions& h = o.evaluation.holdout;
  const bool held_out = h.last > 0 || h.split != LastSplit::none || h.windows > 0 || h.first_window >= 0 ||
                        h.fraction > 0 || h.seconds > 0 || h.train_user_fraction < 1;
  const bool evaluates = o.evaluation.at_start || o.evaluation.every_windows > 0 ||
                         o.evaluation.every_data_fraction > 0 || o.evaluation.target_auc > 0;
  if (o.evaluation.next_window) check_next_window(o);
  if (evaluates && !held_out && !o.evaluation.next_window) {
    fail_usage(
        "evaluation asks for scores, but nothing is held out: set one of evaluation.holdout_windows, "
        "holdout_fraction, holdout_seconds, holdout_last, split, train_user_fraction, or "
        "evaluation.next_window");
  }
  if (o.evaluation.every_windows > 0 && o.evaluation.every_data_fraction > 0) {
    fail_usage("evaluation.every_windows and evaluation.every_data_fraction contradict each other: set one");
  }
  check_best(o, held_out);
  if (!o.checkpoint.publish.empty() && o.checkpoint.never())
    fail_usage("checkpoint.publish = \"{}\", but the run saves nothing: set checkpoint.every_steps",
               o.checkpoint.publish.string());
  o.model.kind().check(task_request(o));
  if (!o.warm_start.name_map.empty() && o.warm_start.checkpoint.empty())
    fail_usage("warm_start.name_map = \"{}\" renames nothing without warm_start.checkpoint (--warm-start)",
               o.warm_start.name_map.string());
  learning_rate(o.schedule, o.dense.learning_rate).validate();
}

}  // namespace hstu
