#include "hstu/model/ranker.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hstu/base/random.h"
#include "hstu/ops/action_rows.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/linear.h"
#include "hstu/ops/norm.h"

namespace hstu {
namespace {

constexpr std::int64_t kTimeFeatures = 4;

ops::Dropout dropout_at(double rate, std::uint64_t key, std::uint64_t place) {
  if (key == 0) return {};
  return {rate, mix64(key + place), {}};
}

Tensor bytes_of(const std::vector<std::uint8_t>& bytes) {
  return Tensor::from<std::uint8_t>({static_cast<std::int64_t>(bytes.size())}, bytes);
}

// [cos h, sin h, cos w, sin w] of the hour of the day and the day of the week, (B, 4).
Tensor time_features(const std::vector<std::int64_t>& times, double circle_constant, DType type) {
  Tensor features = Tensor::empty({static_cast<std::int64_t>(times.size()), kTimeFeatures}, type);
  with_float_type(type, [&]<typename T>() {
    T* out = features.mutable_data<T>();
    for (const std::int64_t time : times) {
      const double hour = std::floor(static_cast<double>(time) / 3600);
      const double day = std::floor(static_cast<double>(time) / 86400);
      const double hour_angle = (hour - 24 * std::floor(hour / 24)) / 24 * 2 * circle_constant;
      const double day_angle = (day - 7 * std::floor(day / 7)) / 7 * 2 * circle_constant;
      for (const double angle : {hour_angle, day_angle}) {
        *out++ = static_cast<T>(std::cos(angle));
        *out++ = static_cast<T>(std::sin(angle));
      }
    }
  });
  return features;
}

}  // namespace

Ranker::Ranker(const ModelConfig& config, std::uint64_t seed, DType type)
    : config_(config),
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
      post_linear_(add_linear(parameters_, "postprocessor.linear", config.dim + kTimeFeatures, config.dim,
                              Initializer::xavier_normal(config.dim + kTimeFeatures, config.dim))),
      post_norm_(add_norm(parameters_, "postprocessor.norm", config.dim)),
      item_(parameters_, "item", (1 + config.attributes) * config.embedding_dim, config.head_hidden,
            config.dim, Initializer::xavier_uniform),
      head_first_(add_linear(parameters_, "head.0", config.dim, config.head_hidden,
                             Initializer::xavier_uniform(config.dim, config.head_hidden))),
      head_swish_(add_norm(parameters_, "head.swish", config.head_hidden)),
      head_second_(add_linear(parameters_, "head.1", config.head_hidden, 1,
                              Initializer::xavier_uniform(config.head_hidden, 1))) {
  if (config.attributes > 0) {
    additional_.emplace_back(parameters_, "preprocessor.additional", config.attributes * config.embedding_dim,
                             config.preprocessor_hidden, config.dim, Initializer::xavier_normal);
  }
  for (std::int64_t i = 0; i < config.layers; ++i) {
    layers_.emplace_back(parameters_, fmt::format("layers.{}", i), config);
  }
}

Variable Ranker::operator()(Tape& tape, const Batch& batch, const LookedUpRows& rows,
                            std::uint64_t dropout_key) const {
  const TokenLayout layout = token_layout(batch, config_);
  Variable x = sequence(tape, layout, rows, dropout_key);                              // (T, D)
  x = encode_users(tape, x, layout, dropout_key);                                      // (B, D)
  const Variable user = postprocess(tape, x, layout);                                  // (B, D)
  const Variable candidate = encode_candidates(tape, batch, rows);                     // (B, D)
  Variable h = ops::multiply(tape, user, candidate);                                   // (B, D)
  h = ops::linear(tape, h, Variable(head_first_.weight), Variable(head_first_.bias));  // (B, head_hidden)
  h = ops::swish_layer_norm(tape, h, Variable(head_swish_.weight), Variable(head_swish_.bias), kNormEpsilon);
  return ops::linear(tape, h, Variable(head_second_.weight), Variable(head_second_.bias));
}

// (C * B, D): row c * B + b is contextual feature c of sample b, each feature with a weight of its own.
Variable Ranker::contextual_tokens(Tape& tape, const LookedUpRows& rows) const {
  std::vector<Variable> features;
  for (const FeatureRows& feature : rows.context) {
    features.push_back(ops::gather_rows(tape, feature.rows, feature.index));
  }
  return ops::grouped_linear(tape, ops::concat_rows(tape, features), Variable(context_weight_),
                             Variable(context_bias_));
}

// (I, D): what a token owes to its item alone, computed once for each distinct item of the batch.
Variable Ranker::item_content(Tape& tape, const LookedUpRows& rows) const {
  const Variable content = content_(tape, rows.items);
  if (additional_.empty()) return content;
  std::vector<Variable> attributes;
  for (const FeatureRows& feature : rows.attributes) {
    attributes.push_back(ops::gather_rows(tape, feature.rows, feature.index));
  }
  return ops::add(tape, content, additional_.front()(tape, ops::concat_columns(tape, attributes)));
}

// (T, D): content, action, position and time of every token.
Variable Ranker::sequence(Tape& tape, const TokenLayout& layout, const LookedUpRows& rows,
                          std::uint64_t dropout_key) const {
  const double scale = std::sqrt(static_cast<double>(config_.dim));
  std::vector<ops::GatherTerm> terms;
  if (config_.context > 0) terms.push_back({contextual_tokens(tape, rows), layout.context, scale});
  terms.push_back({item_content(tape, rows), layout.item, scale});
  const Variable actions =
      action_(tape, ops::action_rows(tape, Variable(action_table_), Variable(action_target_),
                                     bytes_of(layout.actions), bytes_of(config_.action_bits)));
  terms.push_back({actions, layout.action, scale});
  terms.push_back({Variable(position_), layout.position, 1});
  terms.push_back({Variable(time_), layout.time_bucket, 1});
  return ops::gather_sum(tape, terms, dropout_at(config_.input_dropout, dropout_key, 0));
}

// (T, D) -> (B, D): the layers. Nothing reads the last layer's output but the candidate tokens, so it
// computes only them.
Variable Ranker::encode_users(Tape& tape, Variable x, const TokenLayout& layout,
                              std::uint64_t dropout_key) const {
  const auto samples = static_cast<std::int64_t>(layout.query_time.size());
  std::int64_t longest = config_.max_sequence;
  if (config_.attention_scale == "longest_in_batch") {
    longest = 0;
    for (std::size_t b = 0; b < layout.query_time.size(); ++b) {
      longest = std::max(longest, layout.offsets[b + 1] - layout.offsets[b]);
    }
  }
  auto all = std::make_shared<ops::AttentionShape>();
  all->heads = config_.heads;
  all->head_dim = config_.head_dim;
  all->alpha = 1 / std::sqrt(static_cast<double>(config_.head_dim));
  all->offsets = layout.offsets;
  all->query_offsets = layout.offsets;
  all->scale.assign(static_cast<std::size_t>(samples), 1.0 / static_cast<double>(longest));
  auto candidates = std::make_shared<ops::AttentionShape>(*all);
  std::iota(candidates->query_offsets.begin(), candidates->query_offsets.end(), 0);

  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const bool last = i + 1 == layers_.size();
    x = layers_[i](tape, x, last ? layout.candidate : Tensor(), last ? candidates : all,
                   dropout_at(config_.layer_dropout, dropout_key, i + 1));
  }
  return x;
}

Variable Ranker::postprocess(Tape& tape, const Variable& x, const TokenLayout& layout) const {
  const Variable times =
      Variable::constant(time_features(layout.query_time, config_.circle_constant, x.value().dtype()));
  const Variable h = ops::linear(tape, ops::concat_columns(tape, {x, times}), Variable(post_linear_.weight),
                                 Variable(post_linear_.bias));
  return ops::layer_norm(tape, h, Variable(post_norm_.weight), Variable(post_norm_.bias), kNormEpsilon);
}

// (B, D): the candidates' items and attributes, seen apart from any user.
Variable Ranker::encode_candidates(Tape& tape, const Batch& batch, const LookedUpRows& rows) const {
  std::vector<std::int32_t> candidates(batch.candidate_item.begin(), batch.candidate_item.end());
  std::vector<Variable> features{ops::gather_rows(tape, rows.items, ops::row_index(std::move(candidates)))};
  for (const FeatureRows& feature : rows.attributes) {
    std::vector<std::int32_t> index;
    for (const std::int32_t item : batch.candidate_item) {
      index.push_back(feature.index.data<std::int32_t>()[item]);
    }
    features.push_back(ops::gather_rows(tape, feature.rows, ops::row_index(std::move(index))));
  }
  return item_(tape, ops::concat_columns(tape, features));
}

}  // namespace hstu
