#include "hstu/model/hstu_stack.h"

#include <cmath>
#include <utility>

#include "hstu/attention/time_thresholds.h"
#include "hstu/model/group_batch.h"
#include "hstu/model/shared_samples.h"

namespace hstu {
HstuStack::HstuStack(ParameterSet& set, const std::string& prefix, const HstuStackConfig& config)
    : config_(config) {
  for (std::int64_t i = 0; i < config.layers; ++i)
    layers_.emplace_back(set, fmt::format("{}.{}", prefix, i), config.layer);
  if (const std::int64_t buckets = config.layer.bias.time_buckets; buckets > 0)
    thresholds_ = &set.add_constant(Tensor::from({buckets}, log_time_thresholds(buckets)));
}

Variable HstuStack::operator()(Tape& tape, const Variable& x, const StackRows& all, const StackRows& wanted,
                               double scale, const Draws& draws, std::uint64_t first_place,
                               const StackMask& mask) const {
  const StackTokens tokens{all, wanted, mask, scale};
  const auto layers = [&](const Variable& rows, const StackTokens& of, const GroupBatch* group) {
    return group != nullptr && is_divided() ? run(tape, rows, group->tokens, draws, first_place, group)
                                            : compute(tape, rows, of, draws, first_place);
  };
  const auto shared = SharedSamples::find(tape.context(), tokens, x.value().dtype(), own_heads());
  return shared ? shared->compute(tape, x, layers) : layers(x, tokens, nullptr);
}

// Of this rank's tokens, or of those of all ranks of a tensor group.
Variable HstuStack::compute(Tape& tape, const Variable& x, const StackTokens& tokens, const Draws& draws,
                            std::uint64_t first_place) const {
  if (!is_divided()) return run(tape, x, tokens, draws, first_place, nullptr);
  const Context& context = tape.context();
  require(context.groups != nullptr, "layers that are divided among ranks without groups");
  const GroupBatch batch = gather_batch(context.groups->tensor, tokens, x.rows(), x.value().dtype(), context);
  return run(tape, x, batch.tokens, draws, first_place, &batch);
}

Variable HstuStack::run(Tape& tape, Variable x, const StackTokens& tokens, const Draws& draws,
                        std::uint64_t first_place, const GroupBatch* group) const {
  const auto& [all, wanted, mask, scale] = tokens;
  ops::AttentionShape every;
  every.heads = config_.layer.heads;
  every.head_dim = config_.layer.head_dim;
  every.alpha = config_.layer.alpha > 0 ? config_.layer.alpha
                                        : 1 / std::sqrt(static_cast<double>(config_.layer.head_dim));
  every.offsets = all.offsets;
  every.mask = mask.mask;
  every.contexts = mask.contexts;
  every.targets = mask.targets;
  every.scale = scale;
  every.sample_scale = mask.sample_scale;
  every.division = all.division, every.exchanges_again = config_.layer.recompute.silu;
  if (thresholds_ != nullptr) {
    require(all.query_time.defined() && all.key_time.defined() && wanted.query_time.defined(),
            "layers with a time table need the times of queries and keys");
    every.bias.thresholds = *thresholds_;
    every.bias.query_time = all.query_time, every.bias.key_time = all.key_time;
  }
  ops::AttentionShape last = every;
  if (wanted.rows.defined()) {
    last.query_offsets = wanted.offsets, last.bias.query_time = wanted.query_time;
    last.division = wanted.division;
  }

  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const bool is_last = i + 1 == layers_.size();
    const StackRows& rows = is_last ? wanted : all;
    ops::AttentionShape shape = is_last ? last : every;
    if (mask.keys != nullptr) mask.keys->attach(i, shape);
    GroupRows of_ranks;
    if (group != nullptr) of_ranks = is_last ? group->last_layer : group->every_layer;
    x = layers_[i](tape, x, rows.rows, shape, draws.dropout(config_.dropout, first_place + i, rows.names),
                   of_ranks);
  }
  return x;
}

}  // namespace hstu
