#include "hstu/kinds/dlrmv4/dlrmv4.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hstu/model/stages.h"
#include "hstu/ops/action_rows.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/linear.h"
#include "hstu/ops/mlp.h"
#include "hstu/ops/norm.h"

namespace hstu {
namespace {

constexpr std::int64_t kClockFeatures = 4;

std::vector<Mlp> additional(ParameterSet& set, const Dlrmv4Config& config) {
  std::vector<Mlp> mlp;
  if (config.attributes > 0) {
    mlp.emplace_back(set, "preprocessor.additional", config.attributes * config.embedding_dim,
                     config.preprocessor_hidden, config.dim, Initializer::xavier_normal);
  }
  return mlp;
}

bool features_fit(const Dlrmv4Config& config, const SampleFeatures& features) {
  return static_cast<std::int64_t>(features.attributes.size()) == config.attributes &&
         static_cast<std::int64_t>(features.context.size()) == config.context;
}

}  // namespace

Dlrmv4::Dlrmv4(const Dlrmv4Config& config, SampleFeatures features, std::uint64_t seed, DType type)
    : config_(config),
      layout_(config, std::move(features), type),
      parameters_(derive_key(seed, "dense parameters"), type),
      content_(parameters_, "preprocessor.content", config.embedding_dim, config.preprocessor_hidden,
               config.dim, Initializer::xavier_normal),
      action_table_(parameters_.add("preprocessor.action.table",
                                    {static_cast<std::int64_t>(config.action_bits.size()), config.action_dim},
                                    Initializer::normal(0.1))),
      action_target_(
          parameters_.add("preprocessor.action.target",
                          {1, static_cast<std::int64_t>(config.action_bits.size()) * config.action_dim},
                          Initializer::normal(0.1))),
      compute_(type),
      action_bits_(Tensor::from({static_cast<std::int64_t>(config.action_bits.size())}, config.action_bits)),
      action_(parameters_, "preprocessor.action", action_target_.value.size(), config.preprocessor_hidden,
              config.dim, Initializer::xavier_normal),
      context_weight_(parameters_.add("preprocessor.contextual.weight",
                                      {config.context, config.embedding_dim, config.dim},
                                      Initializer::xavier_normal(config.embedding_dim, config.dim))),
      context_bias_(parameters_.add("preprocessor.contextual.bias", {config.context, config.dim},
                                    Initializer::zeros())),
      position_(
          parameters_.add("encoder.position", {config.positions, config.dim},
                          Initializer::uniform(std::sqrt(1.0 / static_cast<double>(config.positions))))),
      time_(parameters_.add("encoder.time", {config.time_buckets + 1, config.dim},
                            Initializer::uniform(std::sqrt(1.0 / static_cast<double>(config.time_buckets))))),
      post_linear_(add_linear(parameters_, "postprocessor.linear", config.dim + kClockFeatures, config.dim,
                              Initializer::xavier_normal(config.dim + kClockFeatures, config.dim))),
      post_norm_(add_norm(parameters_, "postprocessor.norm", config.dim)),
      item_(parameters_, "item", (1 + config.attributes) * config.embedding_dim, config.head_hidden,
            config.dim, Initializer::xavier_uniform),
      head_first_(add_linear(parameters_, "head.0", config.dim, config.head_hidden,
                             Initializer::xavier_uniform(config.dim, config.head_hidden))),
      head_swish_(add_norm(parameters_, "head.swish", config.head_hidden)),
      head_second_(add_linear(parameters_, "head.1", config.head_hidden, 1,
                              Initializer::xavier_uniform(config.head_hidden, 1))),
      additional_(additional(parameters_, config)),
      stack_(parameters_, "layers",
             {config.layers,
              {.dim = config.dim,
               .heads = config.heads,
               .head_dim = config.head_dim,
               .recompute = config.recompute},
              config.layer_dropout}) {
  require(features_fit(config, layout_.features()),
          "expected features for {} attributes and {} contextual tokens", config.attributes, config.context);
}

void Dlrmv4::move_to(const Context& context, DType compute) {
  compute_ = compute;
  parameters_.move_to(context);
  action_bits_ = action_bits_.copy(context);
}

Dlrmv4::Rows Dlrmv4::by_kind(std::span<const Variable> rows) const {
  const SampleFeatures& features = layout_.features();
  require(rows.size() == 1 + features.attributes.size() + features.context.size(),
          "expected rows of {} features, found {}", 1 + features.attributes.size() + features.context.size(),
          rows.size());
  return {rows[0], rows.subspan(1, features.attributes.size()), rows.subspan(1 + features.attributes.size())};
}

Variable Dlrmv4::forward(Tape& tape, const Batch& batch, std::span<const Variable> all_rows,
                         const Draws& draws) const {
  const Rows rows = by_kind(all_rows);
  StageRange stage(tape, kPreprocessorStage);
  const Variable x = sequence(tape, batch, rows, draws);      // (T, D)
  stage.next("");                                             // the layers name their own
  const Variable last = encode_users(tape, x, batch, draws);  // (N, D)
  stage.next(kHeadStage);
  // One row for each candidate from here on: in the parameters' type, which costs nothing.
  const Variable encoded = ops::convert(tape, last, position_.value.dtype());  // (N, D)
  const Variable user = postprocess(tape, encoded, batch);                     // (N, D)
  const Variable candidate = encode_candidates(tape, batch, rows);             // (N, D)
  return ops::mlp(tape, ops::multiply(tape, user, candidate),
                  {.weight1 = Variable(head_first_.weight),
                   .bias1 = Variable(head_first_.bias),
                   .swish_weight = Variable(head_swish_.weight),
                   .swish_bias = Variable(head_swish_.bias),
                   .weight2 = Variable(head_second_.weight),
                   .bias2 = Variable(head_second_.bias),
                   .norm_weight = {},
                   .norm_bias = {}},
                  kNormEpsilon);
}

// Causal, and the candidates are the last tokens.
StackFlops Dlrmv4::flops(const Batch& batch) const {
  const auto offsets = batch.values<std::int64_t>(dlrmv4::kOffsets),
             candidates = batch.values<std::int64_t>(dlrmv4::kCandidateOffsets);
  std::vector<SampleQueries> samples;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    const auto tokens = static_cast<std::int32_t>(offsets[b + 1] - offsets[b]),
               queries = static_cast<std::int32_t>(candidates[b + 1] - candidates[b]);
    samples.push_back({sample_mask(tokens, 0, queries, 1, kUnlimited, 0), queries});
  }
  return stack_flops(stack_.config(), samples);
}

// (C * B, D): row c * B + b is contextual feature c of sample b, each feature with a weight of its own.
Variable Dlrmv4::contextual_tokens(Tape& tape, const Batch& batch, const Rows& rows) const {
  std::vector<ops::Gathered> features;
  for (std::size_t c = 0; c < rows.context.size(); ++c)
    features.push_back({rows.context[c], batch.tensor(index_column(layout_.features().context[c].name))});
  return ops::grouped_linear(tape, ops::convert(tape, ops::gather_blocks(tape, features), compute_),
                             ops::weight(tape, context_weight_, compute_), Variable(context_bias_));
}

// (I, D): what a token owes to its item alone, computed once for each distinct item of the batch.
Variable Dlrmv4::item_content(Tape& tape, const Batch& batch, const Rows& rows) const {
  Variable content = content_(tape, ops::convert(tape, rows.items, compute_));
  if (additional_.empty()) return content;
  std::vector<ops::Gathered> attributes;
  for (std::size_t a = 0; a < rows.attributes.size(); ++a)
    attributes.push_back(
        {rows.attributes[a], batch.tensor(index_column(layout_.features().attributes[a].name))});
  return additional_.front()(tape, ops::convert(tape, ops::gather_columns(tape, attributes), compute_),
                             content);
}

// (T, D): content, action, position and time of every token.
Variable Dlrmv4::sequence(Tape& tape, const Batch& batch, const Rows& rows, const Draws& draws) const {
  const double scale = std::sqrt(static_cast<double>(config_.dim));
  std::vector<ops::GatherTerm> terms;
  if (config_.context > 0)
    terms.push_back({contextual_tokens(tape, batch, rows), batch.tensor(dlrmv4::kContext), scale});
  terms.push_back(
      {item_content(tape, batch, rows), batch.tensor(index_column(layout_.features().item.name)), scale});
  const Variable actions = action_(tape, ops::action_rows(tape, ops::weight(tape, action_table_, compute_),
                                                          ops::weight(tape, action_target_, compute_),
                                                          batch.tensor(dlrmv4::kActions), action_bits_));
  terms.push_back({actions, batch.tensor(dlrmv4::kAction), scale});
  terms.push_back({ops::weight(tape, position_, compute_), batch.tensor(dlrmv4::kPosition), 1});
  terms.push_back({ops::weight(tape, time_, compute_), batch.tensor(dlrmv4::kTimeBucket), 1});
  return ops::gather_sum(tape, terms,
                         draws.dropout(config_.input_dropout, kInputPlace, batch.tensor(dlrmv4::kTokenName)));
}

// (T, D) -> (N, D). Nothing reads the last layer's output but the candidates' tokens.
Variable Dlrmv4::encode_users(Tape& tape, const Variable& x, const Batch& batch, const Draws& draws) const {
  const bool longest_in_batch = config_.attention_scale == AttentionScale::longest_in_batch;
  // A rank may have no sample of a batch.
  const std::int64_t divisor =
      longest_in_batch ? std::max<std::int64_t>(batch.longest, 1) : config_.max_sequence;
  const StackRows all{{}, batch.tensor(dlrmv4::kOffsets), batch.tensor(dlrmv4::kTokenName)};
  const StackRows candidates{batch.tensor(dlrmv4::kCandidate), batch.tensor(dlrmv4::kCandidateOffsets),
                             batch.tensor(dlrmv4::kCandidateName)};
  StackMask mask;
  if (has_shared_histories(batch)) mask.targets = batch.tensor(dlrmv4::kTargets);
  return stack_(tape, x, all, candidates, 1.0 / static_cast<double>(divisor), draws, kFirstLayerPlace, mask);
}

Variable Dlrmv4::postprocess(Tape& tape, const Variable& x, const Batch& batch) const {
  const Variable clock = Variable::constant(batch.tensor(dlrmv4::kClock));  // (N, kClockFeatures)
  const Variable h = ops::linear(tape, ops::concat_columns(tape, {x, clock}), Variable(post_linear_.weight),
                                 Variable(post_linear_.bias));
  return ops::layer_norm(tape, h, Variable(post_norm_.weight), Variable(post_norm_.bias), kNormEpsilon);
}

// (N, D): the candidates' items and attributes, seen apart from any user.
Variable Dlrmv4::encode_candidates(Tape& tape, const Batch& batch, const Rows& rows) const {
  std::vector<ops::Gathered> features{{rows.items, batch.tensor(dlrmv4::kCandidateItem)}};
  for (std::size_t a = 0; a < rows.attributes.size(); ++a)
    features.push_back(
        {rows.attributes[a], batch.tensor(candidate_column(layout_.features().attributes[a].name))});
  return item_(tape, ops::gather_columns(tape, features));
}

}  // namespace hstu
