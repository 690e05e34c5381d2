#include "hstu/optimizer/dense_optimizer.h"

#include <cmath>
#include <map>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/optimizer/dense_update.h"

namespace hstu {
namespace {

void check_config(const DenseOptimizerConfig& config) {
  const auto rate = [](double x) { return x >= 0.0 && x < 1.0; };
  if (!rate(config.beta1) || !rate(config.beta2) || !rate(config.momentum)) {
    fail_usage("dense optimizer: expected beta1, beta2 and momentum in [0, 1), found {}, {} and {}",
               config.beta1, config.beta2, config.momentum);
  }
  if (!(config.epsilon > 0.0)) fail_usage("dense optimizer: expected epsilon > 0, found {}", config.epsilon);
  if (!(config.weight_decay >= 0.0))
    fail_usage("dense optimizer: expected weight_decay >= 0, found {}", config.weight_decay);
}

// The names of the state tensors of a parameter, without its own.
std::vector<std::string> states_of(const DenseOptimizerConfig& config) {
  if (config.kind != DenseOptimizerKind::sgd) return {"m.", "v."};
  if (config.momentum > 0.0) return {"m."};
  return {};
}

}  // namespace

DenseOptimizer::DenseOptimizer(NamedTensors parameters, DenseOptimizerConfig config, Context context,
                               Shard shard)
    : parameters_(std::move(parameters)),
      config_(config),
      context_(std::move(context)),
      shard_(shard),
      pieces_(shard_of(parameters_, shard)),
      begun_(parameters_.size(), 0) {
  check_config(config_);
  for (const Parameter* p : parameters_) {
    require(p->value.dtype() == DType::f32, "parameter \"{}\": expected f32, found {}", p->name,
            to_string(p->value.dtype()));
  }
  std::vector<std::int64_t> sizes;
  for (const auto& [p, begin, end] : pieces_) {
    sizes.push_back(end - begin);
    const Tensor& value = parameters_[p]->value;
    const Shape shape = end - begin == value.size() ? value.shape() : Shape{end - begin};
    for (const std::string& name : states_of(config_))
      state_.push_back(
          {name + parameters_[p]->name, Tensor::zeros(shape, DType::f32, context_), p, begin, end});
  }
  blocks_ = blocks_of(sizes);
}

std::vector<TensorSpec> DenseOptimizer::whole_state() const {
  std::vector<TensorSpec> whole;
  for (const Parameter* p : parameters_)
    for (const std::string& name : states_of(config_))
      whole.push_back({name + p->name, DType::f32, p->whole_shape()});
  return whole;
}

void DenseOptimizer::set_begun(std::vector<std::int64_t> begun) {
  require(begun.size() == parameters_.size(), "the states of {} parameters begin, of {}", begun.size(),
          parameters_.size());
  begun_ = std::move(begun);
}

UpdateNumbers DenseOptimizer::numbers_of(double learning_rate, double gradient_scale,
                                         std::int64_t begun) const {
  const auto t = static_cast<double>(steps_ - begun + (config_.adam_starts_at_t2 ? 1 : 0));
  const bool decoupled = config_.kind == DenseOptimizerKind::adamw;
  const auto as_float = [](double x) { return static_cast<float>(x); };
  return {
      .is_adam = config_.kind != DenseOptimizerKind::sgd,
      .lr = as_float(learning_rate),
      .momentum = as_float(config_.momentum),
      .beta1 = as_float(config_.beta1),
      .rest1 = as_float(1.0 - config_.beta1),
      .beta2 = as_float(config_.beta2),
      .rest2 = as_float(1.0 - config_.beta2),
      .rate = as_float(learning_rate / (1.0 - std::pow(config_.beta1, t))),
      .root = as_float(1.0 / std::sqrt(1.0 - std::pow(config_.beta2, t))),
      .epsilon = as_float(config_.epsilon),
      .coupled = as_float(decoupled ? 0.0 : config_.weight_decay),
      .keep = as_float(decoupled ? 1.0 - learning_rate * config_.weight_decay : 1.0),
      .gradient_scale = as_float(gradient_scale),
  };
}

void DenseOptimizer::step(double learning_rate, double gradient_scale, const float* factor) {
  require(std::isfinite(learning_rate) && std::isfinite(gradient_scale),
          "expected a finite learning rate and gradient scale, found {} and {}", learning_rate,
          gradient_scale);
  ++steps_;
  for (const Parameter* p : parameters_) {
    require(p->gradient.defined() && p->gradient.shape() == p->value.shape(),
            "parameter \"{}\": expected a gradient of shape {}, found {}", p->name,
            ShapeText{p->value.shape()}, ShapeText{p->gradient.shape()});
  }
  struct Alike {  // of parameters whose state began together
    UpdateNumbers numbers;
    std::vector<DenseUpdate> updates;
  };
  std::map<std::int64_t, Alike> by_begun;
  for (const std::int64_t begun : begun_) {
    const auto [alike, is_new] = by_begun.try_emplace(begun);
    if (is_new) alike->second.numbers = numbers_of(learning_rate, gradient_scale, begun);
  }
  const bool is_adam = config_.kind != DenseOptimizerKind::sgd;
  std::vector<DenseUpdate> updates;  // of each piece
  updates.reserve(pieces_.size());
  auto state = state_.begin();
  for (const auto& [p, begin, end] : pieces_) {
    DenseUpdate update{.end = end - begin,
                       .gradient = parameters_[p]->gradient.data<float>() + begin,
                       .value = parameters_[p]->value.mutable_data<float>() + begin};
    if (is_adam || config_.momentum > 0.0) update.m = (state++)->tensor.mutable_data<float>();
    if (is_adam) update.v = (state++)->tensor.mutable_data<float>();
    updates.push_back(update);
    by_begun.at(begun_[p]).updates.push_back(update);
  }
  if (!context_.device().is_host()) {
    for (const auto& [begun, alike] : by_begun)
      if (!alike.updates.empty()) cuda::update_dense(alike.numbers, alike.updates, factor, context_.cuda());
    return;
  }
  require(factor == nullptr, "on the host, a gradient scale is a number");
  parallel_blocks(static_cast<std::int64_t>(blocks_.size()), 1, [&](std::int64_t b, std::int64_t) {
    const auto [piece, begin, end] = blocks_[static_cast<std::size_t>(b)];
    update_elements(by_begun.at(begun_[pieces_[piece].parameter]).numbers, updates[piece], begin, end);
  });
}

std::int64_t DenseOptimizer::step_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [p, begin, end] : pieces_)
    bytes += 3 * static_cast<std::size_t>(end - begin) * sizeof(float);  // value twice, gradient
  for (const State& state : state_) bytes += 2 * state.tensor.bytes();
  return static_cast<std::int64_t>(bytes);
}

}  // namespace hstu
