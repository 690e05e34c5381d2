#include "hstu/kinds/retrieval/retrieval_kind.h"

#include "hstu/base/error.h"
#include "hstu/batching/history.h"
#include "hstu/config/config_template.h"
#include "hstu/kinds/layer_options.h"
#include "hstu/kinds/retrieval/retrieval.h"
#include "hstu/objective/retrieval_objective.h"
#include "hstu/task/features.h"

namespace hstu {

void describe(ConfigFields& f, RetrievalLoss& o) {
  f.choice(
      "kind", o.kind, kRetrievalLosses,
      "of each position: softmax over all items (full), over items drawn for it (uniform) or drawn for it "
      "from the batch's targets (batch_uniform), over all of those (in_batch) or those and drawn items "
      "(mixed), or binary cross-entropy against drawn items (gbce)");
  f.field("temperature", o.temperature, "products of vectors are divided by it", rule::positive());
  f.field("negatives", o.negatives, "items drawn: uniform, batch_uniform, mixed, gbce",
          rule::between(1, 1 << 20));
  f.field("calibration", o.calibration, "t of gbce: 0: binary cross-entropy; 1: calibrated probabilities",
          rule::between(0, 1));
  f.read_if(o.drawn().any(), "negatives",
            "with kind = \"uniform\", \"batch_uniform\", \"mixed\" or \"gbce\"");
  f.read_if(o.kind == RetrievalLossKind::gbce, "calibration", "with kind = \"gbce\"");
}

void RetrievalOptions::describe(ConfigFields& f) {
  RetrievalConfig& o = config;
  f.choice("preset", o.preset, kSequencePresets,
           "blocks and initial values: HSTU of Meta's generative-recommenders, HSTU of NVIDIA's "
           "recsys-examples, or SASRec");
  f.field("embedding_dim", o.embedding_dim, "width of the item table, of tokens and of vectors",
          rule::between(1, kMostWidth));
  f.field("layers", o.layers, "blocks", rule::between(1, kMostWidth));
  f.field("heads", o.heads, "attention heads", rule::between(1, kMostWidth));
  f.field("head_dim", o.head_dim,
          "width of a head's queries, keys and values; 0: embedding_dim / heads, as SASRec's is always",
          rule::between(0, kMostWidth));
  f.field("positions", o.positions,
          "rows of the position table, and the divisor of HSTU's attention; 0: data.history_length + 11",
          rule::between(0, kMostTokens));
  f.field("dropout", o.dropout, "rate on the tokens and in the blocks", rule::between(0, 0.999));
  f.field("position_bias", o.position_bias, "meta: attention adds a weight by the distance of two events");
  f.field("time_bias", o.time_bias, "meta: and one by the time between them");
  f.field("unit_vectors", o.unit_vectors, "vectors of users and items have the length 1");
  f.field("actions", o.actions, "the model reads which actions an event of the history has");
  f.choice("exclude_seen", o.exclude_seen, kSeenItems,
           "what an evaluation leaves out of the catalogue: the items of all events before the target, of "
           "those that the model sees, or none; a target that is left out is not found");
  f.section("loss", o.loss, "what training minimises");
}

SequenceEncoderConfig encoder_config(const RetrievalConfig& config) {
  const std::int64_t heads = config.heads;
  if (config.head_dim == 0 && config.embedding_dim % heads != 0)
    fail_usage(
        "model.embedding_dim = {} is not a multiple of model.heads = {}: change one, or set model.head_dim",
        config.embedding_dim, heads);
  SequenceEncoderConfig encoder = sequence_preset(
      config.preset, {.dim = config.embedding_dim,
                      .layers = config.layers,
                      .heads = heads,
                      .head_dim = config.head_dim > 0 ? config.head_dim : config.embedding_dim / heads,
                      .longest = config.positions > 0 ? config.positions : config.history + 11,
                      .dropout = config.dropout,
                      .times = config.time_bias});
  if (!config.position_bias) encoder.hstu.layer.bias.positions = 0;
  if (!config.unit_vectors) encoder.output = OutputNorm::none;
  return encoder;
}

namespace retrieval {
namespace {

const RetrievalConfig& config_of(const TaskRequest& request) {
  return options_as<RetrievalOptions>(request.model).config;
}

void check_preset(const RetrievalConfig& model) {
  if (model.preset == SequencePreset::sasrec && model.head_dim > 0)
    fail_usage("model.head_dim = {}: SASRec's heads divide embedding_dim: leave it out", model.head_dim);
  if (model.preset == SequencePreset::sasrec && model.embedding_dim % model.heads != 0)
    fail_usage("model.embedding_dim = {} is not a multiple of model.heads = {}", model.embedding_dim,
               model.heads);
}

}  // namespace

void check(const TaskRequest& request) {
  const RetrievalConfig& model = config_of(request);
  check_preset(model);
  if (model.head_dim == 0 && model.embedding_dim % model.heads != 0)
    fail_usage(
        "model.embedding_dim = {} is not a multiple of model.heads = {}: change one, or set model.head_dim",
        model.embedding_dim, model.heads);
  check_layers_fit(model.layers, model.embedding_dim, model.heads,
                   model.head_dim > 0 ? model.head_dim : model.embedding_dim / model.heads);
  if (model.positions > 0 && model.positions < request.data.history_length)
    fail_usage("model.positions = {} is less than data.history_length = {}: raise it, or set 0",
               model.positions, request.data.history_length);
  if (request.data.min_history < 1)
    fail_usage(
        "data.min_history = {}: a model of kind retrieval predicts an event from those before it: set 1 or "
        "more",
        request.data.min_history);
  if (request.data.negatives.per_positive > 0 || request.evaluation_negatives.per_positive > 0)
    fail_usage(
        "negatives: a model of kind retrieval draws those of its loss (model.loss) and evaluates among all "
        "items: remove data.negatives and evaluation.negatives");
}

Task make(const TaskRequest& request, const DatasetFacts& facts) {
  RetrievalConfig model = config_of(request);
  DataOptions data = data_options(request);
  model.history = resolve_history(data, facts.manifest).longest;
  if (model.preset == SequencePreset::meta && model.time_bias && facts.manifest.times == Times::kOrder)
    fail_usage(
        "model.time_bias: the times of {} are an order without seconds, of which a bias by time learns "
        "nothing "
        "true: set model.time_bias = false",
        facts.source);
  DataOptions evaluation = data;
  data.predicts_next_events = true;
  data.catalogue = model.loss.drawn();
  for (const AttributeSection& a : request.features.attributes)
    model.attributes.push_back({a.name, a.source()});
  data.catalogue.attributes = model.loss.kind == RetrievalLossKind::full && !model.attributes.empty();
  Task task{std::make_unique<Retrieval>(model, sample_features(request, facts), request.seed),
            std::make_unique<RetrievalObjective>(RetrievalObjectiveConfig{.loss = model.loss,
                                                                          .unit = model.unit_vectors,
                                                                          .exclude_seen = model.exclude_seen,
                                                                          .attributes = model.attributes}),
            data, evaluation};
  task.has_baseline = false;
  task.no_requests =
      "a model of kind retrieval scores no single candidates: name users by --users, and --top, to find "
      "items";
  return task;
}

std::string propose(const Proposal& p) {
  std::string text =
      fmt::format("preset = \"meta\"\nembedding_dim = {}\nlayers = {}\nheads = {}\ndropout = {}\n", p.dim,
                  p.layers, p.heads, p.dropout);
  if (!p.has_times) text += toml_comment("The log has an order and no times.") + "time_bias = false\n";
  constexpr double kMany = 0.05;
  if (p.repeated >= kMany) {
    text += toml_comment(fmt::format(
        "{:.0f} % of the events repeat an item of their user, so that lists have seen items too. "
        "\"history\" ranks in lists without them, as predict --exclude-seen makes them: a repeated "
        "item is then never found.",
        100 * p.repeated));
    text += "exclude_seen = \"none\"\n";
  }
  text += toml_comment("Softmax over all items: exact, and fast up to some ten thousand of them.");
  return text + "loss = { kind = \"full\", temperature = 0.05 }\n";
}

}  // namespace retrieval
}  // namespace hstu
