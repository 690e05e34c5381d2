#include "hstu/model/relative_bias.h"

namespace hstu {

LayerBias::LayerBias(ParameterSet& set, const std::string& name, const RelativeBiasConfig& config) {
  const Initializer normal = Initializer::normal(config.deviation);
  if (config.positions > 0) position_ = &set.add(name + ".position", {1, 2 * config.positions - 1}, normal);
  if (config.time_buckets > 0) time_ = &set.add(name + ".time", {1, config.time_buckets + 1}, normal);
}

ops::AttentionShape LayerBias::with_tables(ops::AttentionShape shape) const {
  if (position_ != nullptr) shape.bias.position_table = Variable(*position_);
  if (time_ != nullptr) shape.bias.time_table = Variable(*time_);
  return shape;
}

}  // namespace hstu
