#include "hstu/kinds/ranking_gr/ranking_gr.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hstu/ops/convert.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/norm.h"

namespace hstu {
namespace {

constexpr double kRowEpsilon = 1e-6;  // the least norm that a row is divided by

std::vector<ActivatedMlp> preprocessor(ParameterSet& set, const std::string& name,
                                       const RankingGrConfig& config, bool used) {
  std::vector<ActivatedMlp> mlp;
  if (used && config.preprocessor_mlp) {
    mlp.emplace_back(set, name, std::vector{config.embedding_dim, config.dim, config.dim},
                     ops::Activation::relu);
  }
  return mlp;
}

std::vector<std::int64_t> head_widths(const RankingGrConfig& config) {
  std::vector<std::int64_t> widths{config.dim};
  widths.insert(widths.end(), config.head_hidden.begin(), config.head_hidden.end());
  widths.push_back(static_cast<std::int64_t>(config.labels.size()));
  return widths;
}

}  // namespace

RankingGr::RankingGr(const RankingGrConfig& config, SampleFeatures features, FeatureSpec action,
                     std::uint64_t seed, DType type)
    : config_(config),
      layout_(config, std::move(features), std::move(action)),
      parameters_(derive_key(seed, "dense parameters"), type),
      compute_(type),
      item_mlp_(preprocessor(parameters_, "preprocessor.item", config, true)),
      context_mlp_(preprocessor(parameters_, "preprocessor.contextual", config, config.context > 0)),
      position_(
          parameters_.add("encoder.position", {config.positions, config.dim},
                          Initializer::uniform(std::sqrt(1.0 / static_cast<double>(config.positions))))),
      stack_(parameters_, "layers", {config.layers, ranking_layer(config), config.dropout}),
      head_(parameters_, "head", head_widths(config), config.head_activation) {
  require(!config.labels.empty() && config.max_sequence > 0, "ranking_gr: expected labels and a length");
  require(config.preprocessor_mlp || config.embedding_dim == config.dim,
          "ranking_gr: rows of {} do not fit tokens of {}", config.embedding_dim, config.dim);
  require(layout_.sample_features().attributes.empty() &&
              static_cast<std::int64_t>(layout_.sample_features().context.size()) == config.context,
          "ranking_gr: expected {} contextual features and no attributes", config.context);
}

void RankingGr::move_to(const Context& context, DType compute) {
  compute_ = compute;
  parameters_.move_to(context);
}

// Without targets the candidate is seen by contexts and by a history that is not causal; in a group of
// several events it is seen by others.
bool RankingGr::shares_histories() const {
  const bool sees_candidates = !config_.causal || (config_.context > 0 && config_.contextual_mask);
  return config_.tokens_of_event() % config_.target_group == 0 &&
         (config_.candidates > 0 || !sees_candidates);
}

KeptTokens RankingGr::kept_tokens() const {
  if (!config_.causal || (config_.context > 0 && config_.contextual_mask)) return {};
  return {.layers = config_.layers,
          .width = config_.heads * config_.head_dim,
          .contexts = config_.context,
          .of_event = config_.tokens_of_event()};
}

Variable RankingGr::forward(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                            const Draws& draws) const {
  require(rows.size() == features().size(), "ranking_gr: expected rows of {} features, found {}",
          features().size(), rows.size());
  const Variable x = sequence(tape, batch, rows, draws);                                // (T, D)
  const Variable candidates = encode(tape, x, batch, draws);                            // (Tq, D)
  Variable y = ops::gather_rows(tape, candidates, batch.tensor(ranking_gr::kExample));  // (R, D)
  y = head_(tape, ops::l2_normalise(tape, y, kRowEpsilon));                             // (R, outputs)
  return ops::convert(tape, y, position_.value.dtype());
}

// (n, E) -> (n, D), in the type of tokens.
Variable RankingGr::preprocess(Tape& tape, const std::vector<ActivatedMlp>& mlp, const Variable& rows) const {
  const Variable x = ops::convert(tape, rows, compute_);
  return mlp.empty() ? x : mlp.front()(tape, x);
}

// (T, D): the row of each token and its position.
Variable RankingGr::sequence(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                             const Draws& draws) const {
  const double scale = std::sqrt(static_cast<double>(config_.dim));
  const auto context = static_cast<std::size_t>(config_.context);
  std::vector<ops::GatherTerm> terms;
  if (context > 0) {
    std::vector<Variable> contextual;
    for (const Variable& feature : rows.subspan(1, context))
      contextual.push_back(preprocess(tape, context_mlp_, feature));
    terms.push_back({ops::concat_rows(tape, contextual), batch.tensor(ranking_gr::kContext), scale});
  }
  terms.push_back({preprocess(tape, item_mlp_, rows[0]),
                   batch.tensor(index_column(layout_.sample_features().item.name)), scale});
  if (config_.actions) {
    terms.push_back({preprocess(tape, item_mlp_, rows[1 + context]),
                     batch.tensor(index_column(layout_.action().name)), scale});
  }
  terms.push_back({ops::weight(tape, position_, compute_), batch.tensor(ranking_gr::kPosition), 1});
  return ops::gather_sum(tape, terms,
                         draws.dropout(config_.dropout, kInputPlace, batch.tensor(ranking_gr::kTokenName)));
}

StackFlops RankingGr::flops(const Batch& batch) const {
  const auto offsets = batch.values<std::int64_t>(ranking_gr::kOffsets),
             queries =
                 config_.candidates == 0 ? offsets : batch.values<std::int64_t>(ranking_gr::kQueryOffsets);
  const auto contexts = batch.values<std::int32_t>(ranking_gr::kContexts),
             targets = batch.values<std::int32_t>(ranking_gr::kTargets);
  std::vector<SampleQueries> samples;
  samples.reserve(contexts.size());
  for (std::size_t b = 0; b < contexts.size(); ++b) {
    samples.push_back({ranking_mask(config_, offsets[b + 1] - offsets[b], contexts[b], targets[b]),
                       static_cast<std::int32_t>(queries[b + 1] - queries[b])});
  }
  return stack_flops(stack_.config(), samples);
}

// (T, D) -> (Tq, D), the tokens of the candidates.
Variable RankingGr::encode(Tape& tape, const Variable& x, const Batch& batch, const Draws& draws) const {
  const StackRows all{{}, batch.tensor(ranking_gr::kOffsets), batch.tensor(ranking_gr::kTokenName)};
  StackRows candidates = all;
  if (config_.candidates > 0) {
    candidates = {batch.tensor(ranking_gr::kQuery), batch.tensor(ranking_gr::kQueryOffsets),
                  batch.tensor(ranking_gr::kQueryName)};
  }
  StackMask mask{.mask = ranking_mask(config_), .contexts = {}, .targets = {}, .keys = batch.history_keys};
  if (config_.context > 0 && config_.contextual_mask) mask.contexts = batch.tensor(ranking_gr::kContexts);
  const auto targets = batch.values<std::int32_t>(ranking_gr::kTargets);
  if (std::any_of(targets.begin(), targets.end(), [](std::int32_t count) { return count > 0; }))
    mask.targets = batch.tensor(ranking_gr::kTargets);
  const std::int64_t divisor =
      config_.attention_divisor > 0 ? config_.attention_divisor : config_.max_sequence;
  return stack_(tape, x, all, candidates, 1.0 / static_cast<double>(divisor), draws, kFirstLayerPlace, mask);
}

}  // namespace hstu
