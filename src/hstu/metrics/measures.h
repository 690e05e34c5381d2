// Measures: values of metrics by name, in the order in which they were added.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/metrics/metric_spec.h"

namespace hstu {

class Measures {
 public:
  // A number, a count, or neither: the samples do not define the metric (null in JSON).
  using Value = std::variant<std::monostate, double, std::int64_t>;

  void add(std::string name, std::optional<double> value);
  void add_count(std::string name, std::int64_t count) { values_.emplace_back(std::move(name), count); }
  // Those of `other`, with a prefix of their names.
  void add(const Measures& other, std::string_view prefix = "");

  // The value as a number. Empty if there is none of this name, or it is undefined.
  std::optional<double> find(std::string_view name) const;
  std::int64_t count(std::string_view name) const;  // 0 if there is none
  // Those that `specs` name first, in their order: readers of JSON may change it.
  Measures in_order_of(MetricSpecs specs) const;
  bool empty() const { return values_.empty(); }
  const std::vector<std::pair<std::string, Value>>& all() const { return values_; }

  bool operator==(const Measures&) const = default;

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

Json to_json(const Measures& measures);  // an object in their order, exact in every bit
// The inverse. Throws Error for a value that is neither a number nor null.
Measures measures_from_json(const Json& json);

}  // namespace hstu
