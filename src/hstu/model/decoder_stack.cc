#include "hstu/model/decoder_stack.h"

#include <cmath>
#include <optional>

#include "hstu/model/stages.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/dense.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/linear.h"
#include "hstu/ops/rms_norm.h"
#include "hstu/ops/rotary.h"

namespace hstu {
namespace {

LinearParameters add_matrix(ParameterSet& set, const std::string& name, std::int64_t in, std::int64_t out) {
  return add_linear(set, name, in, out, Initializer::xavier_uniform(in, out));
}

}  // namespace

DecoderBlock::DecoderBlock(ParameterSet& set, const std::string& prefix, const DecoderStackConfig& config)
    : config_(config),
      attention_norm_(set.add(prefix + ".attention_norm.weight", {config.dim}, Initializer::ones())),
      qkv_(add_matrix(set, prefix + ".qkv", config.dim, 3 * config.heads * config.head_dim)),
      output_(add_matrix(set, prefix + ".output", config.heads * config.head_dim, config.dim)),
      mlp_norm_(set.add(prefix + ".mlp_norm.weight", {config.dim}, Initializer::ones())),
      first_(add_matrix(set, prefix + ".mlp.0", config.dim, config.hidden)),
      second_(add_matrix(set, prefix + ".mlp.1", config.hidden, config.dim)) {}

// Columns of z W + b are [Q, K, V]. Where every token is a query, one product has them all.
DecoderBlock::Operands DecoderBlock::project(Tape& tape, const Variable& z, const StackRows& rows,
                                             const DecoderTokens& tokens) const {
  const std::int64_t w = config_.heads * config_.head_dim;
  const Variable weight = ops::weight(tape, qkv_.weight, z.value().dtype()), bias(qkv_.bias);
  auto operands = [&]() -> Operands {
    if (!rows.rows.defined()) {
      const Variable all = tape.recording() ? ops::linear(tape, z, weight, bias)
                                            : ops::dense(tape, z, weight, bias, {}, {});  // (T, 3 w)
      return {{all, 0, w}, {all, w, w}, {all, 2 * w, w}};
    }
    const Variable zq = ops::gather_rows(tape, z, rows.rows);
    const Variable q = ops::linear_columns(tape, zq, weight, bias, {{0, w}});      // (n, w)
    const Variable kv = ops::linear_columns(tape, z, weight, bias, {{w, 3 * w}});  // (T, 2 w)
    return {q, {kv, 0, w}, {kv, w, w}};
  }();
  if (config_.rotary_base == 0) return operands;
  const auto turned = [&](const ops::Columns& x, const Tensor& positions) {
    return ops::rotary(tape, x, positions, config_.head_dim, config_.rotary_base);
  };
  return {turned(operands.q, rows.rows.defined() ? tokens.wanted_positions : tokens.positions),
          turned(operands.k, tokens.positions), operands.v};
}

Variable DecoderBlock::operator()(Tape& tape, const Variable& x, const StackRows& rows,
                                  const DecoderTokens& tokens, const ops::AttentionShape& shape,
                                  const Draws& draws, std::uint64_t first_place) const {
  if (!config_.recompute.layer) return compute(tape, x, rows, tokens, shape, draws, first_place);
  return tape.recompute(
      [=, this, &tape] { return compute(tape, x, rows, tokens, shape, draws, first_place); });
}

Variable DecoderBlock::compute(Tape& tape, const Variable& x, const StackRows& rows,
                               const DecoderTokens& tokens, const ops::AttentionShape& shape,
                               const Draws& draws, std::uint64_t first_place) const {
  const auto dropout = [&](std::uint64_t place) {
    return draws.dropout(config_.dropout, first_place + place, rows.names);
  };
  StageRange stage(tape, kNormUvqkStage);
  const Variable z = ops::rms_norm(tape, x, Variable(attention_norm_), config_.epsilon);
  const Operands operands = project(tape, z, rows, tokens);
  if (tokens.keys != nullptr) tokens.keys->push_back({operands.k, operands.v});
  stage.next(kAttentionStage);
  ops::AttentionShape dropped = shape;
  dropped.dropout = dropout(0);
  const Variable o =
      rows.rows.defined() && tokens.wants_last
          ? ops::beam_attention(tape, operands.q, operands.k, operands.v, beam_shape(1, tokens.all.offsets))
          : ops::attention(tape, operands.q, operands.k, operands.v, dropped);  // (n, w)
  stage.next(kProjectionStage);
  const Variable residual = rows.rows.defined() ? ops::gather_rows(tape, x, rows.rows) : x;
  if (!tape.recording()) return finish(tape, residual, o);
  const auto weight_of = [&](const LinearParameters& layer) {
    return ops::weight(tape, layer.weight, x.value().dtype());
  };
  const auto beside = [&](const Variable& of, const ops::LinearInput& in, const LinearParameters& layer,
                          std::uint64_t place) {
    const Variable weight = weight_of(layer), bias(layer.bias);
    if (config_.dropout == 0) return ops::linear_residual(tape, in, weight, bias, of);
    return ops::add(tape, of, ops::dropout(tape, ops::linear(tape, in, weight, bias), dropout(place)));
  };
  const Variable y = beside(residual, o, output_, 1);
  const Variable normed = ops::rms_norm(tape, y, Variable(mlp_norm_), config_.epsilon);
  const ops::LinearInput hidden = [&]() -> ops::LinearInput {
    const Variable weight = weight_of(first_), bias(first_.bias);
    if (config_.activation == ops::Activation::gelu) return ops::linear_gelu(tape, normed, weight, bias);
    return ops::activate(tape, ops::linear(tape, normed, weight, bias), config_.activation);
  }();
  Variable result = beside(y, hidden, second_, 2);
  if (config_.recompute.norm) z.drop_value(), normed.drop_value();
  if (config_.recompute.gate && !hidden.gelu().defined()) hidden.variable().drop_value();
  return result;
}

Variable DecoderBlock::operator()(Tape& tape, const Variable& x, DecoderBeams& beams,
                                  std::size_t index) const {
  const DecoderTokens tokens{.all = {},
                             .wanted = {},
                             .positions = beams.positions,
                             .wanted_positions = {},
                             .wants_last = false,
                             .keys = nullptr};
  const Variable z = ops::rms_norm(tape, x, Variable(attention_norm_), config_.epsilon);
  const Operands operands = project(tape, z, {}, tokens);
  beams.codes.back().push_back({operands.k, operands.v});
  ops::BeamShape shape = beam_shape(beams.beams, beams.offsets);
  shape.ancestors = beams.ancestors;
  for (const KeysOfBlocks& code : beams.codes) shape.codes.push_back({code[index].k, code[index].v});
  const DecoderKeys& history = beams.history[index];
  const Variable o = ops::beam_attention(tape, operands.q, history.k, history.v, shape);
  return finish(tape, x, o);
}

ops::BeamShape DecoderBlock::beam_shape(std::int64_t beams, const Tensor& offsets) const {
  return {.beams = beams,
          .heads = config_.heads,
          .head_dim = config_.head_dim,
          .alpha = 1 / std::sqrt(static_cast<double>(config_.head_dim)),
          .offsets = offsets,
          .ancestors = {},
          .codes = {}};
}

Variable DecoderBlock::finish(Tape& tape, const Variable& x, const Variable& o) const {
  const auto layer = [&](const Variable& in, const LinearParameters& of,
                         const std::optional<ops::Activation>& activation, const Variable& residual) {
    return ops::dense(tape, in, ops::weight(tape, of.weight, in.value().dtype()), Variable(of.bias),
                      activation, residual);
  };
  const Variable y = layer(o, output_, {}, x);
  const Variable normed = ops::rms_norm(tape, y, Variable(mlp_norm_), config_.epsilon);
  return layer(layer(normed, first_, config_.activation, {}), second_, {}, y);
}

DecoderStack::DecoderStack(ParameterSet& set, const std::string& prefix, const DecoderStackConfig& config)
    : config_(config) {
  for (std::int64_t i = 0; i < config.layers; ++i)
    blocks_.emplace_back(set, fmt::format("{}.{}", prefix, i), config);
}

Variable DecoderStack::operator()(Tape& tape, Variable x, const DecoderTokens& tokens, const Draws& draws,
                                  std::uint64_t first_place, const StackMask& mask) const {
  ops::AttentionShape every;
  every.heads = config_.heads;
  every.head_dim = config_.head_dim;
  every.alpha = 1 / std::sqrt(static_cast<double>(config_.head_dim));
  every.score = ScoreFunction::softmax;
  every.offsets = tokens.all.offsets;
  every.mask = mask.mask;
  ops::AttentionShape last = every;
  if (tokens.wanted.rows.defined()) last.query_offsets = tokens.wanted.offsets;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const bool is_last = i + 1 == blocks_.size();
    ops::AttentionShape& shape = is_last ? last : every;
    if (mask.keys != nullptr) mask.keys->attach(i, shape);
    x = blocks_[i](tape, x, is_last ? tokens.wanted : tokens.all, tokens, shape, draws,
                   first_place + DecoderBlock::kPlaces * i);
  }
  return x;
}

Variable DecoderStack::operator()(Tape& tape, Variable x, DecoderBeams& beams) const {
  require(!tape.recording(), "a decoder continues beams in forward passes alone");
  beams.codes.emplace_back();
  for (std::size_t i = 0; i < blocks_.size(); ++i) x = blocks_[i](tape, x, beams, i);
  return x;
}

}  // namespace hstu
