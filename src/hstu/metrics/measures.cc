#include "hstu/metrics/measures.h"

#include <algorithm>

#include "hstu/base/error.h"

namespace hstu {

void Measures::add(std::string name, std::optional<double> value) {
  values_.emplace_back(std::move(name), value ? Value(*value) : Value());
}

void Measures::add(const Measures& other, std::string_view prefix) {
  for (const auto& [name, value] : other.values_) values_.emplace_back(std::string(prefix) + name, value);
}

std::optional<double> Measures::find(std::string_view name) const {
  for (const auto& [known, value] : values_) {
    if (known != name) continue;
    if (const auto* const number = std::get_if<double>(&value)) return *number;
    if (const auto* const count = std::get_if<std::int64_t>(&value)) return static_cast<double>(*count);
    return std::nullopt;
  }
  return std::nullopt;
}

std::int64_t Measures::count(std::string_view name) const {
  for (const auto& [known, value] : values_) {
    const auto* const count = std::get_if<std::int64_t>(&value);
    if (known == name && count != nullptr) return *count;
  }
  return 0;
}

Measures Measures::in_order_of(MetricSpecs specs) const {
  Measures ordered = *this;
  const auto place = [&](const auto& entry) {
    const MetricSpec* const spec = find_metric(specs, entry.first);
    return spec == nullptr ? std::ssize(specs) : spec - specs.data();
  };
  std::stable_sort(ordered.values_.begin(), ordered.values_.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return ordered;
}

Json to_json(const Measures& measures) {
  Json json = Json::object();
  for (const auto& [name, value] : measures.all()) {
    Json& to = json[name] = nullptr;
    if (const auto* const number = std::get_if<double>(&value)) to = *number;
    if (const auto* const count = std::get_if<std::int64_t>(&value)) to = *count;
  }
  return json;
}

Measures measures_from_json(const Json& json) {
  check(json.is_object(), "metrics: expected an object, found {}", json.type_name());
  Measures measures;
  for (const auto& [name, value] : json.items()) {
    check(value.is_null() || value.is_number(), "metric {}: expected a number or null, found {}", name,
          value.type_name());
    if (value.is_number_integer())
      measures.add_count(name, value.get<std::int64_t>());
    else
      measures.add(name, value.is_null() ? std::nullopt : std::optional(value.get<double>()));
  }
  return measures;
}

}  // namespace hstu
