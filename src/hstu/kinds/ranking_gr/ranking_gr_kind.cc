#include "hstu/kinds/ranking_gr/ranking_gr_kind.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hstu/batching/history.h"
#include "hstu/config/config.h"
#include "hstu/config/config_template.h"
#include "hstu/kinds/layer_options.h"
#include "hstu/kinds/ranking_gr/ranking_gr.h"
#include "hstu/kinds/ranking_gr/ranking_gr_objective.h"
#include "hstu/task/features.h"

namespace hstu {

void RankingGrOptions::describe(ConfigFields& f) {
  RankingGrConfig& o = config;
  describe_sizes(f, o);
  f.field("preprocessor_mlp", o.preprocessor_mlp,
          "two linear layers from embedding_dim to dim: one MLP for items and actions, one for contextual "
          "features; false: rows are tokens, and both widths are equal");
  f.field("positions", o.positions, "rows of the position table", rule::between(1, kMostTokens));
  f.field("attention_divisor", o.attention_divisor,
          "attention is divided by this; 0: by the tokens of the longest possible sequence",
          rule::at_least(0));
  f.field("dropout", o.dropout, "rate on the tokens and before a layer's output projection",
          rule::between(0, 0.999));
  f.field("norm_epsilon", o.norm_epsilon, "of the layers' norms", rule::positive());
  f.field("residual", o.residual, "a layer adds its output to its input");
  f.field("causal", o.causal, "history does not see later history");
  f.field("contextual_mask", o.contextual_mask,
          "contextual tokens see the whole history; false: they are its first tokens");
  f.field(
      "allow_seen_labels", o.allow_seen_labels,
      "take masks under which an item sees its own action, which reveals its label: for measuring speed on "
      "random data");
  f.field("candidates", o.candidates,
          "the last n items of a sequence are scored, each from the items before all of them; 0: every item, "
          "each from the items before it",
          rule::between(0, 1 << 19));
  f.field("target_group", o.target_group, "tokens of candidates (not items) that see each other",
          rule::between(1, 1 << 20));
  f.field("head_hidden", o.head_hidden, "hidden widths of the head", rule::between(1, kMostWidth));
  f.choice("head_activation", o.head_activation, kernels::kActivations, "between the head's layers");
  f.field("actions", o.actions, "a token of the event's action follows each item");
  f.field("action_column", o.action_column, "context column of action ids; \"\": the event's action bits");
  f.field("action_rows", o.action_rows, "rows of the action table; 0: as many as the dataset's ids ask for",
          rule::at_least(0));
  f.choice("head", o.head, kRankingHeads,
           "multi_task: labels are independent tasks; multi_class: an item has one of the labels");
  f.field("labels", o.labels,
          "tasks or classes in the order of the head's outputs: actions of the dataset, or with label_column "
          "any names; []: the dataset's label");
  f.field("label_column", o.label_column,
          "context column of labels: bit k for task k, or the index of the class, or its text; \"\": labels "
          "are actions");
  f.field("positive_classes", o.positive_classes,
          "multi_class: labels whose joint probability the run's metrics are of", rule::distinct());
  describe_recompute(f, o.recompute);
  f.read_if(o.candidates > 0, "target_group", "with candidates > 0");
  for (const char* const key : {"action_column", "action_rows"})
    f.read_if(o.actions, key, "with actions = true");
  f.field("recompute_silu", o.recompute.silu, "the same of the activated U, V, Q and K of the layers");
}

DataNeeds RankingGrOptions::data_needs() const {
  DataNeeds needs;
  if (!config.action_column.empty()) needs.event_columns = {config.action_column};
  if (config.label_column.empty())
    needs.actions = config.labels;
  else
    needs.label_columns = {config.label_column};
  return needs;
}

namespace ranking_gr {
namespace {

constexpr std::int64_t kActionMasks = 128;  // seven bits

}  // namespace

Task make(const TaskRequest& request, const DatasetFacts& facts) {
  RankingGrConfig model = options_as<RankingGrOptions>(request.model).config;
  const std::string& label = facts.manifest.label;
  if (model.labels.empty()) model.labels = {label};
  DataOptions data = data_options(request);
  const std::int64_t events = resolve_history(data, facts.manifest).longest + 1;
  model.context = static_cast<std::int64_t>(request.features.context.size());
  model.max_sequence = model.context + events * model.tokens_of_event();

  FeatureSpec action{"action", model.action_rows};
  if (action.rows == 0)
    action.rows = model.action_column.empty() ? kActionMasks : facts.rows_of(model.action_column);
  const bool one_of = model.head == RankingHead::multi_class;
  const auto outputs = static_cast<std::int64_t>(model.labels.size());
  data.events = {.wanted = true,
                 .action_column = model.action_column,
                 .label_column = model.label_column,
                 .labels = model.labels,
                 .one_of = one_of,
                 .label_end = one_of ? outputs : std::int64_t{1} << outputs,
                 .candidates = model.candidates,
                 .tokens = model.tokens_of_event()};
  DataOptions evaluation = data;
  evaluation.events.candidates = 1;
  Task task{std::make_unique<RankingGr>(model, sample_features(request, facts), action, request.seed),
            std::make_unique<RankingGrObjective>(model), data, evaluation};
  task.has_baseline = !one_of && model.label_column.empty() && model.labels.front() == label;
  task.saves_memory =
      "model.recompute_norm, model.recompute_gate, model.recompute_silu or model.recompute_layer";
  if (model.allow_seen_labels) {
    task.no_requests =
        "the run has model.allow_seen_labels = true: its items may read their own actions, which a request "
        "does not have; train without it";
  }
  return task;
}

std::string propose(const Proposal& p) {
  const std::size_t tasks = p.only_positives ? 1 : p.actions.size();
  std::vector<std::string> labels;
  for (std::size_t a = 0; a < tasks; ++a) labels.push_back(toml_quoted(p.actions[a]));
  std::string text = toml_comment(
      "Every action is a task, of which the first is the run's AUC: leave out those that nobody asks for. A "
      "column of classes instead: docs/configuration.md.");
  text += fmt::format("labels = [{}]\n", fmt::join(labels, ", "));
  if (p.only_positives) {
    text +=
        toml_comment("Negatives are drawn beside the last event of a sample, so that it alone is predicted.");
    text += "candidates = 1\n";
  }
  text += fmt::format("embedding_dim = {0}\ndim = {0}\nlayers = {1}\nheads = {2}\nhead_dim = {3}\n", p.dim,
                      p.layers, p.heads, p.dim / p.heads);
  text += toml_comment(
      "Contextual tokens, and two for each event: its item and its action; the rest is for features to "
      "come.");
  return text + fmt::format("positions = {}\nhead_hidden = [{}]\ndropout = {}\n",
                            2 * (p.history + 1) + p.contextual_tokens + 16, p.hidden, p.dropout);
}

}  // namespace ranking_gr
}  // namespace hstu
