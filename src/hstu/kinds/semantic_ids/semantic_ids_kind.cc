#include "hstu/kinds/semantic_ids/semantic_ids_kind.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/batching/history.h"
#include "hstu/codes/codes_file.h"
#include "hstu/config/config_template.h"
#include "hstu/kinds/layer_options.h"
#include "hstu/kinds/semantic_ids/semantic_ids.h"
#include "hstu/kinds/semantic_ids/semantic_ids_objective.h"
#include "hstu/task/features.h"

namespace hstu {

void SemanticIdsOptions::describe(ConfigFields& f) {
  SemanticIdsConfig& o = config;
  f.field("codes", o.codes,
          "codes of the items: a folder of hstu tokenize, an index in .json, or a tensor (levels, items) in "
          ".npy or .safetensors");
  f.field("first_item", o.first_item, "is added to the ids of an index or a tensor that count from elsewhere",
          rule::between(-1e15, 1e15));
  f.field("codes_id", o.codes_id, "checksum that the codes must have; \"\": any");
  f.choice("block", o.block, kCodeBlocks, "softmax: a decoder's; hstu: HSTU's layers in its place");
  f.field("dim", o.dim, "width of codes and tokens", rule::between(1, kMostWidth));
  f.field("layers", o.layers, "blocks", rule::between(1, kMostWidth));
  f.field("heads", o.heads, "attention heads", rule::between(1, kMostWidth));
  f.field("head_dim", o.head_dim, "width of a head's queries, keys and values", rule::between(1, kMostWidth));
  f.field("hidden", o.hidden, "of the MLP of a softmax block; 0: 4 dim", rule::between(0, kMostWidth));
  f.choice("activation", o.activation, kernels::kActivations, "of this MLP");
  f.choice(
      "positions", o.positions, kCodePositions,
      "none: order shows by the causal mask alone; learned: a row for each place; rotary: queries and keys "
      "are turned");
  f.field("dropout", o.dropout, "rate on the tokens and in the blocks", rule::between(0, 0.999));
  f.choice("head", o.head, kCodeHeads,
           "training takes softmax over the codes of all levels (shared) or of the level that is asked for "
           "(separate); a search over those of the level");
  f.choice("targets", o.targets, kCodeTargets, "what a sample of training predicts");
  f.field("beam", o.beam, "prefixes that a search keeps: an evaluation finds so many tuples",
          rule::between(1, 1 << 16));
  f.choice("exclude_seen", o.exclude_seen, kSeenItems,
           "what an evaluation leaves out of its lists: the items of all events before the target, of those "
           "that the model sees, or none");
  describe_recompute(f, o.recompute);
  for (const char* const key : {"hidden", "activation"})
    f.read_if(o.block == CodeBlocks::softmax, key, "with block = \"softmax\"");
}

namespace semantic_ids {
namespace {

const SemanticIdsConfig& config_of(const TaskRequest& request) {
  return options_as<SemanticIdsOptions>(request.model).config;
}

// Codes of the items of a dataset. Says how many items share a tuple, which no search can tell apart.
ItemCodes codes_for(const SemanticIdsConfig& model, const DatasetFacts& facts) {
  ItemCodes codes = read_codes(model.codes, model.first_item);
  if (const std::string id = codes_checksum(codes); !model.codes_id.empty() && id != model.codes_id)
    fail_usage("{}: the checksum of the codes is {}, and model.codes_id = \"{}\": restore the codes",
               model.codes.string(), id, model.codes_id);
  const std::int64_t last = facts.rows_of("item") - 1;
  if (codes.items.back() < last)
    fail_usage(
        "{}: codes of the items {} to {}, and {} has items up to {}: give all items codes or, if the ids "
        "count "
        "from elsewhere, set model.first_item",
        model.codes.string(), codes.items.front(), codes.items.back(), facts.source, last);
  const CodeStatistics statistics = code_statistics(codes);
  if (statistics.colliding > 0)
    print_note("{}: {} of {} items share their codes with others: they are found together\n",
               model.codes.string(), with_separators(statistics.colliding),
               with_separators(statistics.items));
  return codes;
}

}  // namespace

void check(const TaskRequest& request) {
  const SemanticIdsConfig& model = config_of(request);
  if (model.codes.empty())
    fail_usage("model.codes: a model of kind semantic_ids needs the codes of items: see hstu tokenize");
  check_layers_fit(model.layers, model.dim, model.heads, model.head_dim);
  if (model.positions == CodePositions::rotary &&
      (model.head_dim % 2 != 0 || model.block == CodeBlocks::hstu))
    fail_usage(
        "model.positions = \"rotary\" needs an even model.head_dim and model.block = \"softmax\": set "
        "learned");
  if (request.data.min_history < 1)
    fail_usage("data.min_history = {}: the first item of a user cannot be predicted: set 1 or more",
               request.data.min_history);
  if (!request.features.attributes.empty() || !request.features.context.empty())
    fail_usage("features: a model of kind semantic_ids has the codes alone: remove attributes and context");
  if (request.data.negatives.per_positive > 0 || request.evaluation_negatives.per_positive > 0)
    fail_usage(
        "negatives: a model of kind semantic_ids has none: remove data.negatives and evaluation.negatives");
}

Task make(const TaskRequest& request, const DatasetFacts& facts) {
  SemanticIdsConfig model = config_of(request);
  DataOptions data = data_options(request);
  model.history = resolve_history(data, facts.manifest).longest;
  const auto codes = std::make_shared<const ItemCodes>(codes_for(model, facts));
  const auto trie = std::make_shared<const CodeTrie>(*codes);
  model.beam = std::min(model.beam, trie->tuples());
  const DataOptions evaluation = data;
  data.predicts_next_events = model.targets == CodeTargets::every_item;
  auto trained = std::make_unique<SemanticIds>(model, codes, trie, request.seed);
  auto objective = std::make_unique<SemanticIdsObjective>(*trained, model, codes, trie);
  Task task{std::move(trained), std::move(objective), data, evaluation};
  task.has_baseline = false;
  task.saves_memory = "model.recompute_norm, model.recompute_gate or model.recompute_layer";
  task.no_requests =
      "a model of kind semantic_ids scores no single candidates: name users by --users, and --top, to find "
      "items";
  return task;
}

std::string propose(const Proposal& p) {
  if (p.codes.empty())
    fail_usage("a model of kind semantic_ids needs the codes of items: name them by --codes");
  const bool has_ids = std::filesystem::is_directory(p.codes);
  std::int64_t first_item = 0;
  if (!has_ids) first_item = std::max<std::int64_t>(0, p.smallest_item - read_codes(p.codes).items.front());
  const ItemCodes codes = read_codes(p.codes, first_item);
  const CodeStatistics statistics = code_statistics(codes);
  std::string text = fmt::format("codes = {}\n",
                                 toml_quoted(std::filesystem::absolute(p.codes).lexically_normal().string()));
  if (first_item != 0) {
    text += toml_comment(fmt::format("The ids of the codes count from {}, those of the dataset from {}.",
                                     codes.items.front() - first_item, p.smallest_item));
    text += fmt::format("first_item = {}\n", first_item);
  }
  text += toml_comment(fmt::format("{} levels; {} items have {} different tuples.", codes.levels(),
                                   with_separators(statistics.items), with_separators(statistics.tuples)));
  text += fmt::format("codes_id = {}\n", toml_quoted(codes_checksum(codes)));
  text += toml_comment("The sizes that NVIDIA's sid_gr has for Amazon's logs.");
  text += "block = \"softmax\"\ndim = 128\nlayers = 4\nheads = 6\nhead_dim = 64\ndropout = 0.2\n";
  text +=
      toml_comment("A search keeps so many prefixes; hstu predict --beam and hstu eval --beam take others.");
  return text + "beam = 20\n";
}

}  // namespace semantic_ids
}  // namespace hstu
