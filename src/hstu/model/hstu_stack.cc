#include "hstu/model/hstu_stack.h"

#include <cmath>
#include <memory>

namespace hstu {
namespace {

std::vector<std::int64_t> values_of(const Tensor& offsets) {
  const std::int64_t* const values = offsets.data<std::int64_t>();
  return {values, values + offsets.size()};
}

}  // namespace

HstuStack::HstuStack(ParameterSet& set, const std::string& prefix, const HstuStackConfig& config)
    : config_(config) {
  for (std::int64_t i = 0; i < config.layers; ++i)
    layers_.emplace_back(set, fmt::format("{}.{}", prefix, i), config.layer);
}

Variable HstuStack::operator()(Tape& tape, Variable x, const StackRows& all, const StackRows& wanted,
                               double scale, const Draws& draws, std::uint64_t first_place) const {
  auto every = std::make_shared<ops::AttentionShape>();
  every->heads = config_.layer.heads;
  every->head_dim = config_.layer.head_dim;
  every->alpha = 1 / std::sqrt(static_cast<double>(config_.layer.head_dim));
  every->offsets = values_of(all.offsets);
  every->query_offsets = every->offsets;
  every->scale.assign(every->offsets.size() - 1, scale);
  auto last = std::make_shared<ops::AttentionShape>(*every);
  last->query_offsets = values_of(wanted.offsets);

  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const bool is_last = i + 1 == layers_.size();
    const StackRows& rows = is_last ? wanted : all;
    x = layers_[i](tape, x, rows.rows, is_last ? last : every,
                   draws.dropout(config_.dropout, first_place + i, rows.names));
  }
  return x;
}

}  // namespace hstu
