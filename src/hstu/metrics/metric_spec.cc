#include "hstu/metrics/metric_spec.h"

#include <algorithm>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {

const MetricSpec* find_metric(MetricSpecs specs, std::string_view name) {
  for (const MetricSpec& spec : specs) {
    const bool is_it =
        spec.has_cutoff ? cutoff_of(name) && name.substr(0, name.find('@')) == spec.name : name == spec.name;
    if (is_it) return &spec;
  }
  return nullptr;
}

const MetricSpec& known_metric(MetricSpecs specs, const std::string& name) {
  const MetricSpec* const found = find_metric(specs, name);
  if (found != nullptr && found->better != Better::neither) return *found;
  std::vector<std::string> known;
  for (const MetricSpec& spec : specs)
    if (spec.better != Better::neither)
      known.push_back(std::string(spec.name) + (spec.has_cutoff ? "@10" : ""));
  fail_usage("unknown metric \"{}\"{}", name, suggestion(name, known));
}

std::vector<MetricSpec> metrics_of_all(std::span<const MetricSpecs> kinds) {
  std::vector<MetricSpec> all;
  for (const MetricSpecs specs : kinds)
    for (const MetricSpec& spec : specs)
      if (std::none_of(all.begin(), all.end(), [&](const MetricSpec& s) { return s.name == spec.name; }))
        all.push_back(spec);
  return all;
}

std::optional<std::int64_t> cutoff_of(std::string_view name) {
  const std::size_t at = name.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  const auto k = parse_number<std::int64_t>(name.substr(at + 1));
  return k && *k >= 1 ? k : std::nullopt;
}

}  // namespace hstu
