// The relative bias of one layer's attention (attention/problem.h) as parameters: one position table and one
// time table, shared by the heads.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/model/parameters.h"
#include "hstu/ops/attention.h"

namespace hstu {

struct RelativeBiasConfig {
  std::int64_t positions = 0;  // P: distances from 1 - P to P - 1 have a row of their own; 0: no such table
  std::int64_t time_buckets = 0;  // thresholds; the table has one row more; 0: no such table
  double deviation = 0.02;        // of the normal initial values

  bool any() const { return positions > 0 || time_buckets > 0; }
};

class LayerBias {
 public:
  // Adds NAME.position (1, 2 P - 1) and NAME.time (1, time_buckets + 1), those that the configuration has.
  LayerBias(ParameterSet& set, const std::string& name, const RelativeBiasConfig& config);

  // The shape with this layer's tables in place of those of shape.bias, whose thresholds and times it keeps.
  ops::AttentionShape with_tables(ops::AttentionShape shape) const;

 private:
  const Parameter *position_ = nullptr, *time_ = nullptr;
};

}  // namespace hstu
