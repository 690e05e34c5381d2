#include "hstu/options/model_options.h"

namespace hstu {
namespace {

constexpr double kMostWidth = 1 << 16, kMostTokens = 1 << 24;

// Less memory for more time; the results are the same bits.
void describe_recompute(ConfigFields& f, Recompute& o) {
  f.field("recompute_norm", o.norm, "the backward pass computes the layers' normalised inputs once more");
  f.field("recompute_gate", o.gate, "the same of the gates' results");
  f.field("recompute_layer", o.layer, "the same of whole layers, attention included, from their inputs");
}

}  // namespace

void describe(ConfigFields& f, Dlrmv4Config& o) {
  f.field("embedding_dim", o.embedding_dim, "width of the embedding tables", rule::between(1, kMostWidth));
  f.field("dim", o.dim, "width of the sequence model", rule::between(1, kMostWidth));
  f.field("layers", o.layers, "HSTU layers", rule::between(1, kMostWidth));
  f.field("heads", o.heads, "attention heads", rule::between(1, kMostWidth));
  f.field("head_dim", o.head_dim, "width of a head's queries, keys and values", rule::between(1, kMostWidth));
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

void describe(ConfigFields& f, RankingGrConfig& o) {
  f.field("embedding_dim", o.embedding_dim, "width of the embedding tables", rule::between(1, kMostWidth));
  f.field("dim", o.dim, "width of the sequence model", rule::between(1, kMostWidth));
  f.field("layers", o.layers, "HSTU layers", rule::between(1, kMostWidth));
  f.field("heads", o.heads, "attention heads", rule::between(1, kMostWidth));
  f.field("head_dim", o.head_dim, "width of a head's queries, keys and values", rule::between(1, kMostWidth));
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
          "context column of labels: bit k for task k, or the index of the class; \"\": labels are actions");
  f.field("positive_classes", o.positive_classes,
          "multi_class: labels whose joint probability the run's metrics are of");
  describe_recompute(f, o.recompute);
  f.field("recompute_silu", o.recompute.silu, "the same of the activated U, V, Q and K of the layers");
}

}  // namespace hstu
