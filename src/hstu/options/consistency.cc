#include <algorithm>
#include <string>
#include <vector>

#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/metrics/metric_name.h"
#include "hstu/options/options.h"

namespace hstu {
namespace {

// Refuses masks under which an item sees its own action, in training and in evaluation: directly, or in the
// second layer through a contextual token that sees all history.
void check_labels_are_unseen(const RunOptions& o) {
  const RankingGrConfig& m = o.ranking;
  if (!m.actions || m.allow_seen_labels) return;
  constexpr const char* kAnyway =
      "or, to measure speed on data without meaning, set model.allow_seen_labels = true";
  if (m.candidates == 0 && m.contextual_mask && !o.features.context.empty() && m.layers > 1) {
    fail_usage(
        "model.contextual_mask = true with model.candidates = 0: contextual tokens see the actions of all "
        "events, and items see them, so that every item sees its own label: set contextual_mask = false, or "
        "candidates to 1 or more, {}",
        kAnyway);
  }
  if (!m.causal && (m.candidates == 0 || m.target_group > 1)) {
    fail_usage(
        "model.causal = false with model.candidates = {} and target_group = {}: an item sees its own action, "
        "and so its label: set causal = true, or target_group = 1 with candidates of 1 or more, {}",
        m.candidates, m.target_group, kAnyway);
  }
}

void check_ranking(const RunOptions& o) {
  check_labels_are_unseen(o);
  const RankingGrConfig& m = o.ranking;
  if (!m.preprocessor_mlp && m.embedding_dim != m.dim) {
    fail_usage(
        "model.embedding_dim = {} and model.dim = {} differ without an MLP between them: set "
        "model.preprocessor_mlp = true or make them equal",
        m.embedding_dim, m.dim);
  }
  if (!o.features.attributes.empty()) {
    fail_usage("features.attributes: the model ranking_gr has no item attributes: remove \"{}\"",
               o.features.attributes.front().name);
  }
  if (!o.features.actions.empty())
    fail_usage("features.actions: the model ranking_gr reads model.action_column: remove the key");
  constexpr std::int64_t kLongest = std::int64_t{1} << 20;  // what token_name() distinguishes
  const std::int64_t tokens = static_cast<std::int64_t>(o.features.context.size()) +
                              m.tokens_of_event() * (o.data.options.history_length + 1);
  if (tokens >= kLongest) {
    fail_usage("data.history_length = {} makes sequences of {} tokens: shorten it to fewer than {}",
               o.data.options.history_length, tokens, kLongest);
  }
  for (const ContextualFeature& feature : o.features.context) {
    if (feature.name == "action")
      fail_usage("features.context: \"action\" is the name of another table: use another name");
  }
  if (m.labels.empty() && !m.label_column.empty())
    fail_usage("model.labels is empty: name the tasks or classes of model.label_column = \"{}\"",
               m.label_column);
  if (m.head == RankingHead::multi_task && m.labels.size() > 62)
    fail_usage("model.labels names {} tasks: at most 62", m.labels.size());
  if (m.head == RankingHead::multi_class && (m.labels.size() < 2 || m.positive_classes.empty())) {
    fail_usage(
        "model.head = \"multi_class\" needs at least two model.labels, found {}, and model.positive_classes, "
        "found {}",
        m.labels.size(), m.positive_classes.size());
  }
  if (m.head == RankingHead::multi_task && !m.positive_classes.empty())
    fail_usage("model.positive_classes has a meaning only with model.head = \"multi_class\"");
  for (std::size_t i = 0; i < m.labels.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      if (m.labels[i] == m.labels[j]) fail_usage("model.labels names \"{}\" twice", m.labels[i]);
  }
  for (const std::string& name : m.positive_classes) {
    if (std::find(m.labels.begin(), m.labels.end(), name) == m.labels.end())
      fail_usage("model.positive_classes: \"{}\" is not in model.labels{}", name, suggestion(name, m.labels));
  }
}

// Refuses sizes whose weights alone exceed this machine's memory, before anything is allocated. `heads` and
// the others are those of either kind of model; the layers' matrices U, V, Q, K and the output are counted,
// four times each: values, gradients and two moments. Memory that other parts need is refused when they ask
// for it.
template <typename Config>
void check_memory(const Config& o) {
  const double weights = 5.0 * static_cast<double>(o.layers) * static_cast<double>(o.dim) *
                         static_cast<double>(o.heads) * static_cast<double>(o.head_dim);
  const double bytes = 4 * sizeof(float) * weights;
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (bytes > memory) {
    fail_usage(
        "model: {} layers of width {} with {} heads of {} need {} for training, and this machine has {}: "
        "lower "
        "model.layers, dim, heads or head_dim",
        o.layers, o.dim, o.heads, o.head_dim, human_bytes(bytes), human_bytes(memory));
  }
}

// The metric of the best checkpoint and of patience is measured, and more than once.
void check_best(const RunOptions& o, bool held_out) {
  const std::string& best = o.checkpoint.best;
  if (best.empty()) {
    if (o.evaluation.patience > 0)
      fail_usage("evaluation.patience = {} needs a metric: set checkpoint.best = \"auc\"",
                 o.evaluation.patience);
    return;
  }
  if (!held_out)
    fail_usage("checkpoint.best = \"{}\", but nothing is held out: set evaluation.holdout_fraction", best);
  const std::vector<std::int64_t>& cutoffs = o.evaluation.ranking_k;
  const auto k = cutoff_of(best);
  if (k ? std::find(cutoffs.begin(), cutoffs.end(), *k) == cutoffs.end() : best == "mrr" && cutoffs.empty())
    fail_usage("checkpoint.best = \"{}\" is not measured: set evaluation.ranking_k = [{}]", best,
               k.value_or(10));
}

// Every feature has a table of its own, which has its name, also in checkpoints.
void check_feature_names(const FeaturesSection& features) {
  std::vector<std::string> taken = {"item"};
  const auto take = [&](const std::string& name, const char* list) {
    if (!is_plain_name(name)) fail_usage("{}: expected {}, found \"{}\"", list, kPlainName, name);
    if (std::find(taken.begin(), taken.end(), name) != taken.end())
      fail_usage("{}: the name \"{}\" is taken by another table: use another name", list, name);
    taken.push_back(name);
  };
  for (const AttributeSection& attribute : features.attributes) take(attribute.name, "features.attributes");
  for (const ContextualFeature& feature : features.context) take(feature.name, "features.context");
}

}  // namespace

void check_consistency(const RunOptions& o) {
  check_feature_names(o.features);
  if (o.model_kind == ModelKind::ranking_gr)
    check_memory(o.ranking);
  else
    check_memory(o.model);
  const HoldoutOptions& h = o.evaluation.holdout;
  const bool held_out =
      h.windows > 0 || h.first_window >= 0 || h.fraction > 0 || h.seconds > 0 || h.train_user_fraction < 1;
  const bool evaluates = o.evaluation.at_start || o.evaluation.every_windows > 0 ||
                         o.evaluation.every_data_fraction > 0 || o.evaluation.target_auc > 0;
  if (evaluates && !held_out) {
    fail_usage(
        "evaluation asks for scores, but nothing is held out: set one of evaluation.holdout_windows, "
        "holdout_fraction, holdout_seconds, train_user_fraction");
  }
  if (o.evaluation.every_windows > 0 && o.evaluation.every_data_fraction > 0) {
    fail_usage("evaluation.every_windows and evaluation.every_data_fraction contradict each other: set one");
  }
  check_best(o, held_out);
  const std::int64_t longest =
      static_cast<std::int64_t>(o.features.context.size()) + o.data.options.history_length + 1;
  if (o.model_kind == ModelKind::ranking_gr) {
    check_ranking(o);
  } else if (longest > o.model.max_sequence) {
    fail_usage(
        "model.max_sequence = {} is too short for {} contextual tokens, a history of {} and the candidate: "
        "raise it to {} or shorten data.history_length",
        o.model.max_sequence, o.features.context.size(), o.data.options.history_length, longest);
  }
  if (!o.warm_start.name_map.empty() && o.warm_start.checkpoint.empty())
    fail_usage("warm_start.name_map = \"{}\" renames nothing without warm_start.checkpoint (--warm-start)",
               o.warm_start.name_map.string());
  learning_rate(o.schedule, o.dense.learning_rate).validate();
}

}  // namespace hstu
