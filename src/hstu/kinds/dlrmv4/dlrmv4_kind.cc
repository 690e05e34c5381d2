#include "hstu/kinds/dlrmv4/dlrmv4_kind.h"

#include "hstu/base/contains.h"
#include "hstu/config/config_template.h"
#include "hstu/kinds/dlrmv4/dlrmv4.h"
#include "hstu/kinds/dlrmv4/dlrmv4_objective.h"
#include "hstu/kinds/layer_options.h"
#include "hstu/task/features.h"

namespace hstu {

void Dlrmv4Options::describe(ConfigFields& f) {
  Dlrmv4Config& o = config;
  describe_sizes(f, o);
  f.field("preprocessor_hidden", o.preprocessor_hidden,
          "hidden width of the content, attribute and action MLPs", rule::between(1, kMostWidth));
  f.field("head_hidden", o.head_hidden, "hidden width of the item MLP and the head",
          rule::between(1, kMostWidth));
  f.field("action_dim", o.action_dim, "width of an action bit's embedding", rule::between(1, kMostWidth));
  f.field("positions", o.positions, "rows of the position table", rule::between(1, kMostTokens));
  f.field("time_buckets", o.time_buckets, "buckets of sqrt(minutes) between an event and the candidate",
          rule::between(1, kMostTokens));
  f.field("max_sequence", o.max_sequence, "tokens of a sequence at most: context, history, candidate",
          rule::between(2, kMostTokens));
  f.field("input_dropout", o.input_dropout, "rate on the token embeddings", rule::between(0, 0.999));
  f.field("layer_dropout", o.layer_dropout, "rate before a layer's output projection",
          rule::between(0, 0.999));
  f.field("loss_weight", o.loss_weight, "factor of the mean cross entropy", rule::positive());
  f.choice("attention_scale", o.attention_scale, kAttentionScales,
           "attention is divided by max_sequence, or by the longest_in_batch (DLRMv4 reference): of the "
           "part, where "
           "training.micro_batch_tokens divides a batch");
  f.choice("query_time", o.query_time, kQueryTimes,
           "the candidate token's time: the candidate's own, or that of the last_event (DLRMv4 reference)");
  f.field("circle_constant", o.circle_constant, "of the clock features; the DLRMv4 reference uses 3.14",
          rule::positive());
  describe_recompute(f, o.recompute);
}

namespace dlrmv4 {
namespace {

// The options with what the dataset and the features say.
Dlrmv4Config complete_config(const TaskRequest& request, const DatasetFacts& facts) {
  Dlrmv4Config model = options_as<Dlrmv4Options>(request.model).config;
  const std::vector<std::string>& wanted = request.features.actions;
  for (const ActionBit& action : facts.manifest.actions) {
    if (wanted.empty() || contains(wanted, action.name)) model.action_bits.push_back(action.bit);
  }
  for (const std::string& name : wanted) facts.manifest.action_bit(name);  // throws if unknown
  model.attributes = static_cast<std::int64_t>(request.features.attributes.size());
  model.context = static_cast<std::int64_t>(request.features.context.size());
  return model;
}

}  // namespace

void check(const TaskRequest& request) {
  const Dlrmv4Config& model = options_as<Dlrmv4Options>(request.model).config;
  check_layers_fit(model.layers, model.dim, model.heads, model.head_dim);
  const std::size_t context = request.features.context.size();
  const std::int64_t longest = static_cast<std::int64_t>(context) + request.data.history_length + 1;
  if (longest > model.max_sequence) {
    fail_usage(
        "model.max_sequence = {} is too short for {} contextual tokens, a history of {} and the candidate: "
        "raise it to {} or shorten data.history_length",
        model.max_sequence, context, request.data.history_length, longest);
  }
}

Task make(const TaskRequest& request, const DatasetFacts& facts) {
  const Dlrmv4Config model = complete_config(request, facts);
  DataOptions data = data_options(request);
  data.max_sequence = model.max_sequence;
  Task task{std::make_unique<Dlrmv4>(model, sample_features(request, facts), request.seed),
            std::make_unique<Dlrmv4Objective>(model.loss_weight), data, data};
  task.saves_memory = "model.recompute_norm, model.recompute_gate or model.recompute_layer";
  if (model.attention_scale == AttentionScale::longest_in_batch) {
    task.note_on_requests =
        "model.attention_scale = \"longest_in_batch\": a score depends on the other requests of its batch";
  }
  return task;
}

std::string propose(const Proposal& p) {
  return fmt::format("embedding_dim = {0}\ndim = {0}\nlayers = {1}\nheads = {2}\nhead_dim = {3}\n", p.dim,
                     p.layers, p.heads, p.dim / p.heads) +
         fmt::format("preprocessor_hidden = {0}\nhead_hidden = {0}\n", p.hidden) +
         toml_comment(fmt::format(
             "{} contextual tokens, the history, the candidate; the rest is for features to come.",
             p.contextual_tokens)) +
         fmt::format("positions = {0}\nmax_sequence = {0}\n", p.history + 16) +
         fmt::format("input_dropout = {}\nlayer_dropout = 0.1\n", p.dropout);
}

}  // namespace dlrmv4
}  // namespace hstu
