#include "hstu/model/sasrec_stack.h"

#include <cmath>

#include "hstu/attention/visible_pairs.h"
#include "hstu/model/stages.h"
#include "hstu/ops/activation.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/linear.h"

namespace hstu {
namespace {

// The projections of queries, keys and values are drawn as the one matrix (E, 3 E) that they are in Meta's
// code.
LinearParameters add_projection(ParameterSet& set, const std::string& name, std::int64_t dim,
                                std::int64_t out) {
  return add_linear(set, name, dim, out, Initializer::xavier_normal(dim, 3 * dim));
}

LinearParameters add_mlp_layer(ParameterSet& set, const std::string& name, std::int64_t dim) {
  const Parameter& weight = set.add(name + ".weight", {dim, dim}, Initializer::xavier_normal(dim, dim));
  return {weight,
          set.add(name + ".bias", {dim}, Initializer::uniform(1 / std::sqrt(static_cast<double>(dim))))};
}

Variable product(Tape& tape, const Variable& x, const LinearParameters& layer) {
  return ops::linear(tape, x, ops::weight(tape, layer.weight, x.value().dtype()), Variable(layer.bias));
}

}  // namespace

SasrecBlock::SasrecBlock(ParameterSet& set, const std::string& prefix, const SasrecStackConfig& config)
    : config_(config),
      query_norm_(set, prefix + ".query_norm", config.dim, config.epsilon, false),
      mlp_norm_(set, prefix + ".mlp_norm", config.dim, config.epsilon, false),
      query_(add_projection(set, prefix + ".query", config.dim, config.dim)),
      key_value_(add_projection(set, prefix + ".key_value", config.dim, 2 * config.dim)),
      output_(add_linear(set, prefix + ".output", config.dim, config.dim,
                         Initializer::xavier_normal(config.dim, config.dim))),
      first_(add_mlp_layer(set, prefix + ".mlp.0", config.dim)),
      second_(add_mlp_layer(set, prefix + ".mlp.1", config.dim)) {}

Variable SasrecBlock::operator()(Tape& tape, const Variable& x, const StackRows& rows,
                                 const ops::AttentionShape& shape, const Draws& draws,
                                 std::uint64_t first_place) const {
  const std::int64_t e = config_.dim;
  const auto drop = [&](const Variable& y, std::uint64_t place) {
    return ops::dropout(tape, y, draws.dropout(config_.dropout, first_place + place, rows.names));
  };
  StageRange stage(tape, kNormUvqkStage);
  const Variable wanted = rows.rows.defined() ? ops::gather_rows(tape, x, rows.rows) : x;
  const Variable normed = query_norm_(tape, wanted);  // (n, E)
  const Variable q = product(tape, normed, query_);   // (n, E)
  const Variable kv = product(tape, x, key_value_);   // (T, 2 E)
  stage.next(kAttentionStage);
  ops::AttentionShape dropped = shape;
  dropped.dropout = draws.dropout(config_.dropout, first_place, rows.names);
  const Variable o = ops::attention(tape, q, {kv, 0, e}, {kv, e, e}, dropped);  // (n, E)
  stage.next(kProjectionStage);
  const Variable z = mlp_norm_(tape, ops::add(tape, normed, product(tape, o, output_)));
  const Variable hidden = ops::activate(tape, product(tape, z, first_), ops::Activation::relu);
  return ops::add(tape, z, drop(product(tape, drop(hidden, 1), second_), 2));
}

SasrecStack::SasrecStack(ParameterSet& set, const std::string& prefix, const SasrecStackConfig& config)
    : config_(config) {
  if (config.heads < 1 || config.dim % config.heads != 0)
    fail_usage("SASRec: a width of {} is not divided by {} heads: set model.heads to a divisor of it",
               config.dim, config.heads);
  for (std::int64_t i = 0; i < config.layers; ++i)
    blocks_.emplace_back(set, fmt::format("{}.{}", prefix, i), config);
}

Variable SasrecStack::operator()(Tape& tape, Variable x, const StackRows& all, const StackRows& wanted,
                                 const Draws& draws, std::uint64_t first_place,
                                 const HistoryKeys* keys) const {
  ops::AttentionShape every;
  every.heads = config_.heads;
  every.head_dim = config_.dim / config_.heads;
  every.alpha = 1 / std::sqrt(static_cast<double>(every.head_dim));
  every.score = ScoreFunction::softmax;
  every.offsets = all.offsets;
  ops::AttentionShape last = every;
  if (wanted.rows.defined()) last.query_offsets = wanted.offsets;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const bool is_last = i + 1 == blocks_.size();
    ops::AttentionShape shape = is_last ? last : every;
    if (keys != nullptr) keys->attach(i, shape);
    x = blocks_[i](tape, x, is_last ? wanted : all, shape, draws, first_place + SasrecBlock::kPlaces * i);
  }
  return x;
}

namespace {

LayerFlops block_flops(std::int64_t dim, const SampleMask& mask, std::int32_t queries) {
  const std::int64_t product = 2 * dim * dim;  // of a row and a matrix (E, E)
  return {.uvqk = product * (queries + 2 * std::int64_t{mask.n}),
          .attention = 4 * dim * visible_pairs(mask, queries),
          .projection = 3 * product * queries};
}

}  // namespace

StackFlops sasrec_flops(const SasrecStackConfig& stack, std::span<const SampleQueries> samples) {
  StackFlops sum;
  for (const auto& [mask, wanted] : samples) {
    for (std::int64_t i = 0; i < stack.layers; ++i) {
      sum.model += block_flops(stack.dim, mask, mask.n);
      sum.computed += block_flops(stack.dim, mask, i + 1 == stack.layers ? wanted : mask.n);
    }
  }
  return sum;
}

}  // namespace hstu
