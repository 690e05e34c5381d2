#include "hstu/kinds/semantic_ids/semantic_ids_kind.h"

#include <algorithm>

#include "hstu/base/contains.h"
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

namespace {

constexpr const char* kExportedCodes = "codes";

// Refuses codes in which an item has others than those of model.codes_id; more items may have some.
ItemCodes checked_codes(const SemanticIdsConfig& model) {
  ItemCodes codes = read_codes(model.codes, model.first_item);
  const std::string id = codes_checksum(codes);
  if (!model.codes_id.empty() && id != model.codes_id && !contains(codes.earlier, model.codes_id))
    fail_usage(
        "{0}: the checksum of the codes is {1}, and model.codes_id = \"{2}\": restore the codes (hstu "
        "tokenize "
        "--append gives new items codes, and keeps those of the others), or begin another run; if yours keep "
        "them too: hstu train --resume RUN --set model.codes_id={1} --allow-change model.codes_id",
        model.codes.string(), id, model.codes_id);
  return codes;
}

}  // namespace

void SemanticIdsOptions::settle() {
  config.codes = std::filesystem::absolute(config.codes).lexically_normal();
  if (config.codes_id.empty()) config.codes_id = codes_checksum(checked_codes(config));
}

void SemanticIdsOptions::continue_from(const KindOptions& before) {
  const SemanticIdsConfig& known = options_as<SemanticIdsOptions>(before).config;
  if (config.codes != known.codes) config.codes = std::filesystem::absolute(config.codes).lexically_normal();
  if (config.codes_id.empty()) config.codes_id = known.codes_id;
}

void SemanticIdsOptions::export_files(const Path& folder) {
  const ItemCodes codes = checked_codes(config);
  std::filesystem::create_directory(folder / kExportedCodes);
  write_codes(folder / kExportedCodes, codes, {{"name", "export"}});
  config.codes = kExportedCodes;
  config.codes_id = codes_checksum(codes);
  config.first_item = 0;
}

void SemanticIdsOptions::open_export(const Path& folder) {
  if (std::filesystem::exists(folder / kExportedCodes)) config.codes = folder / kExportedCodes;
}

namespace semantic_ids {
namespace {

const SemanticIdsConfig& config_of(const TaskRequest& request) {
  return options_as<SemanticIdsOptions>(request.model).config;
}

// Says how many items share a tuple, which no search can tell apart.
ItemCodes codes_of(const SemanticIdsConfig& model) {
  ItemCodes codes = checked_codes(model);
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
  const auto codes = std::make_shared<const ItemCodes>(codes_of(model));
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

namespace {

struct ProposedIds {
  std::int64_t first_item = 0;
  std::string why = {};  // a comment; "": the ids are those of the dataset
};

// A shift of the ids of codes is proposed only where all items of the dataset have codes with it and some
// have none without it: ids may begin elsewhere because the first items are in no event.
ProposedIds proposed_ids(const Proposal& p) {
  const ItemCodes codes = read_codes(p.codes);
  const auto without = [&](std::int64_t shift) {
    return std::ranges::count_if(p.item_ids, [&](std::int64_t id) { return !codes.find(id - shift); });
  };
  const bool has_ids = std::filesystem::is_directory(p.codes);
  const std::int64_t shift = has_ids || p.item_ids.empty() ? 0 : p.item_ids.front() - codes.items.front();
  const std::int64_t as_is = without(0), shifted = shift == 0 ? as_is : without(shift);
  const std::string all = with_separators(std::ssize(p.item_ids));
  if (shift != 0 && shifted == 0 && as_is > 0)
    return {shift,
            fmt::format("The ids of the codes count from {}, those of the dataset from {}: {} of its {} "
                        "items would have no codes.",
                        codes.items.front(), p.item_ids.front(), with_separators(as_is), all)};
  if (shift != 0 && shifted == 0)
    return {0,
            fmt::format("All items have codes by their ids as they are, and also with first_item = {}: "
                        "which is right is not known. Set it if the ids of the codes count from elsewhere.",
                        shift)};
  if (as_is == 0) return {};
  return {
      0,
      fmt::format(
          "{} of {} items have no codes{}: they are neither learnt nor found.", with_separators(as_is), all,
          shift == 0 ? "" : fmt::format(", {} with first_item = {}", with_separators(shifted), shift))};
}

}  // namespace

std::string propose(const Proposal& p) {
  if (p.codes.empty())
    fail_usage("a model of kind semantic_ids needs the codes of items: name them by --codes");
  const ProposedIds ids = proposed_ids(p);
  const ItemCodes codes = read_codes(p.codes, ids.first_item);
  const CodeStatistics statistics = code_statistics(codes);
  std::string text = fmt::format("codes = {}\n",
                                 toml_quoted(std::filesystem::absolute(p.codes).lexically_normal().string()));
  if (!ids.why.empty()) text += toml_comment(ids.why);
  if (ids.first_item != 0) text += fmt::format("first_item = {}\n", ids.first_item);
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
