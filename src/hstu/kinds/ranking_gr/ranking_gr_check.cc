// Which values of RankingGR's keys contradict each other.
#include <string>
#include <vector>

#include "hstu/base/contains.h"
#include "hstu/base/text.h"
#include "hstu/kinds/layer_options.h"
#include "hstu/kinds/ranking_gr/ranking_gr_kind.h"

namespace hstu::ranking_gr {
namespace {

// Refuses masks under which an item sees its own action, in training and in evaluation: directly, or in the
// second layer through a contextual token that sees all history.
void check_labels_are_unseen(const RankingGrConfig& m, const FeaturesSection& features) {
  if (!m.actions || m.allow_seen_labels) return;
  constexpr const char* kAnyway =
      "or, to measure speed on data without meaning, set model.allow_seen_labels = true";
  if (m.candidates == 0 && m.contextual_mask && !features.context.empty() && m.layers > 1) {
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

// A negative has no class; and of several scored events of a sample only the last would have negatives.
void check_negatives(const RankingGrConfig& m, const TaskRequest& request) {
  const bool trains = request.data.negatives.per_positive > 0,
             evaluates = request.evaluation_negatives.per_positive > 0;
  const char* const key = trains ? "data.negatives.per_positive" : "evaluation.negatives";
  if (!trains && !evaluates) return;
  if (m.head == RankingHead::multi_class) {
    fail_usage(
        "{} needs labels that a negative does not have, and model.head = \"multi_class\" gives every item a "
        "class: set model.head = \"multi_task\", or draw no negatives",
        key);
  }
  if (trains && m.candidates != 1) {
    fail_usage("{} with model.candidates = {}: negatives belong to one event of a sample: set candidates = 1",
               key, m.candidates);
  }
}

}  // namespace

void check(const TaskRequest& request) {
  const RankingGrConfig& m = options_as<RankingGrOptions>(request.model).config;
  const FeaturesSection& features = request.features;
  check_layers_fit(m.layers, m.dim, m.heads, m.head_dim);
  check_labels_are_unseen(m, features);
  check_negatives(m, request);
  if (!m.preprocessor_mlp && m.embedding_dim != m.dim) {
    fail_usage(
        "model.embedding_dim = {} and model.dim = {} differ without an MLP between them: set "
        "model.preprocessor_mlp = true or make them equal",
        m.embedding_dim, m.dim);
  }
  if (!features.attributes.empty()) {
    fail_usage("features.attributes: the model ranking_gr has no item attributes: remove \"{}\"",
               features.attributes.front().name);
  }
  if (!features.actions.empty())
    fail_usage("features.actions: the model ranking_gr reads model.action_column: remove the key");
  constexpr std::int64_t kLongest = std::int64_t{1} << 20;  // what token_name() distinguishes
  const std::int64_t tokens = static_cast<std::int64_t>(features.context.size()) +
                              m.tokens_of_event() * (request.data.history_length + 1);
  if (tokens >= kLongest) {
    fail_usage("data.history_length = {} makes sequences of {} tokens: shorten it to fewer than {}",
               request.data.history_length, tokens, kLongest);
  }
  for (const ContextualFeature& feature : features.context) {
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
    if (!contains(m.labels, name))
      fail_usage("model.positive_classes: \"{}\" is not in model.labels{}", name, suggestion(name, m.labels));
  }
}

}  // namespace hstu::ranking_gr
