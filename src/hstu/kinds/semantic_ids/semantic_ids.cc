#include "hstu/kinds/semantic_ids/semantic_ids.h"

#include <utility>

#include "hstu/base/error.h"
#include "hstu/model/stages.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/linear.h"
#include "hstu/ops/rms_norm.h"

namespace hstu {
namespace {

using namespace semantic_ids;

constexpr double kEpsilon = 1e-5;
constexpr double kRotaryBase = 10'000;

// Places of the longest history and its candidate.
std::int64_t places(const SemanticIdsConfig& config, const ItemCodes& codes) {
  return (config.history + 1) * (codes.levels() + 1);
}

const Parameter* add_places(ParameterSet& set, const SemanticIdsConfig& config, const ItemCodes& codes) {
  if (config.positions != CodePositions::learned) return nullptr;
  return &set.add("place", {places(config, codes), config.dim}, Initializer::normal(0.02));
}

}  // namespace

std::vector<ops::TrieLevel> trie_levels(const CodeTrie& trie, const ItemCodes& codes) {
  const auto list = [](const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>({std::ssize(values)}, values);
  };
  std::vector<ops::TrieLevel> levels;
  for (std::int64_t l = 0; l < trie.levels(); ++l)
    levels.push_back({.code = list(trie.level(l).code),
                      .first_child = list(trie.level(l).first_child),
                      .first_row = static_cast<std::int32_t>(codes.first_row(l))});
  return levels;
}

DecoderStackConfig decoder_config(const SemanticIdsConfig& config) {
  return {.layers = config.layers,
          .dim = config.dim,
          .heads = config.heads,
          .head_dim = config.head_dim,
          .hidden = config.mlp_width(),
          .activation = config.activation,
          .dropout = config.dropout,
          .epsilon = kEpsilon,
          .rotary_base = config.positions == CodePositions::rotary ? kRotaryBase : 0,
          .recompute = config.recompute};
}

HstuStackConfig hstu_config(const SemanticIdsConfig& config) {
  return {.layers = config.layers,
          .layer = {.dim = config.dim,
                    .heads = config.heads,
                    .head_dim = config.head_dim,
                    .gate = ops::GateForm::product,
                    .recompute = config.recompute},
          .dropout = config.dropout};
}

SemanticIds::SemanticIds(const SemanticIdsConfig& config, std::shared_ptr<const ItemCodes> codes,
                         std::shared_ptr<const CodeTrie> trie, std::uint64_t seed, DType type)
    : config_(config),
      codes_(std::move(codes)),
      trie_(std::move(trie)),
      trie_levels_(trie_levels(*trie_, *codes_)),
      layout_(codes_, config.targets, config.head),
      compute_(type),
      parameters_(derive_key(seed, "dense parameters"), type),
      bos_(parameters_.add("bos", {1, config.dim}, Initializer::normal(1))),
      place_(add_places(parameters_, config, *codes_)),
      output_norm_(parameters_.add("output_norm.weight", {config.dim}, Initializer::ones())),
      head_(parameters_.add("head.weight", {config.dim, codes_->rows()},
                            Initializer::xavier_uniform(config.dim, codes_->rows()))) {
  require(config.history > 0, "semantic ids: expected the length of histories");
  if (config.block == CodeBlocks::softmax)
    softmax_.emplace(parameters_, "layers", decoder_config(config));
  else
    hstu_.emplace(parameters_, "layers", hstu_config(config));
}

void SemanticIds::move_to(const Context& context, DType compute) {
  compute_ = compute;
  parameters_.move_to(context);
  for (ops::TrieLevel& level : trie_levels_)
    level.code = level.code.copy(context), level.first_child = level.first_child.copy(context);
}

std::vector<FeatureSpec> SemanticIds::features() const {
  return {{std::string(kCode), codes_->rows()}};
}

HstuStackConfig SemanticIds::layers() const {
  return hstu_ ? hstu_->config() : HstuStackConfig();
}

Variable SemanticIds::forward(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                              const Draws& draws) const {
  require(rows.size() == 1, "semantic ids: expected rows of codes, found those of {} features", rows.size());
  const Variable table = ops::convert(tape, rows[0], compute_);
  if (tape.recording()) return vectors_of_targets(tape, batch, table, draws);
  return Variable::constant(search(tape, batch, table));
}

Variable SemanticIds::vectors_of_targets(Tape& tape, const Batch& batch, const Variable& rows,
                                         const Draws& draws) const {
  const StackRows all{.rows = {}, .offsets = batch.tensor(kCodeOffsets), .names = batch.tensor(kCodeName)};
  const Tokens tokens{
      .code = batch.tensor(index_column(kCode)),
      .bos = batch.tensor(kBos),
      .at = {.all = all, .wanted = all, .positions = batch.tensor(kPlace), .wanted_positions = {}}};
  StackMask mask;
  if (config_.targets == CodeTargets::every_item) {
    const auto levels = static_cast<std::int32_t>(codes_->levels());
    mask.mask.hidden_period = levels + 1, mask.mask.hidden_phase = levels;
  }
  const Variable x = encode(tape, rows, tokens, draws, mask);  // (N, D)
  StageRange stage(tape, kHeadStage);
  const Tensor token = batch.tensor(kTargetToken);
  const Variable predicting = ops::gather_rows(tape, x, token.reshaped({token.size()}));
  return normed(tape, predicting);
}

Variable SemanticIds::normed(Tape& tape, const Variable& x) const {
  const Variable exact = ops::convert(tape, x, accumulator_of(x.value().dtype()));
  return ops::rms_norm(tape, exact, Variable(output_norm_), kEpsilon);
}

Variable SemanticIds::embed(Tape& tape, const Variable& rows, const Tokens& tokens,
                            const Draws& draws) const {
  StageRange stage(tape, kPreprocessorStage);
  const DType type = rows.value().dtype();
  std::vector<ops::GatherTerm> terms{{rows, tokens.code, 1}};
  if (tokens.bos.defined()) terms.push_back({ops::weight(tape, bos_, type), tokens.bos, 1});
  if (place_ != nullptr) terms.push_back({ops::weight(tape, *place_, type), tokens.at.positions, 1});
  return ops::gather_sum(tape, terms, draws.dropout(config_.dropout, kInputPlace, tokens.at.all.names));
}

// Without the last norm.
Variable SemanticIds::encode(Tape& tape, const Variable& rows, const Tokens& tokens, const Draws& draws,
                             const StackMask& mask) const {
  const Variable x = embed(tape, rows, tokens, draws);
  if (softmax_) return (*softmax_)(tape, x, tokens.at, draws, kFirstLayerPlace, mask);
  const double scale = 1 / static_cast<double>(places(config_, *codes_));
  return (*hstu_)(tape, x, tokens.at.all, tokens.at.wanted, scale, draws, kFirstLayerPlace, mask);
}

Variable SemanticIds::logits(Tape& tape, const Variable& vectors, std::int64_t level) const {
  const std::int64_t first = codes_->first_row(level);
  return ops::linear_columns(tape, vectors, ops::weight(tape, head_, vectors.value().dtype()), Variable(),
                             {{first, codes_->first_row(level + 1)}});
}

Variable SemanticIds::logits(Tape& tape, const Variable& vectors) const {
  return ops::linear(tape, vectors, ops::weight(tape, head_, vectors.value().dtype()), Variable());
}

}  // namespace hstu
