#include "hstu/batching/bad_ids.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {

BadIds::BadIds(OnBadId mode, const std::vector<FeatureSpec>& features) : mode_(mode) {
  for (const FeatureSpec& feature : features)
    features_.push_back({.name = feature.name, .rows = feature.rows, .first_sample = {}});
}

BadIds::Feature& BadIds::find(std::string_view name) {
  const auto feature = std::find_if(features_.begin(), features_.end(),
                                    [&](const Feature& candidate) { return candidate.name == name; });
  check(feature != features_.end(), "bad ids were counted for a feature \"{}\" that does not exist", name);
  return *feature;
}

void BadIds::add(std::span<const BadIdCount> counts) {
  for (const BadIdCount& bad : counts) {
    Feature& feature = find(bad.feature);
    if (feature.count == 0) {
      feature.first_id = bad.first_id;
      feature.first_sample =
          fmt::format("the sample of user {} at event {}", bad.first_user, bad.first_position);
    }
    feature.count += bad.occurrences;
    if (mode_ == OnBadId::error) {
      fail(
          "feature \"{}\": expected ids from 0 to {}, found id {} in {}: repair the data, declare more rows, "
          "or "
          "set ids.on_bad = \"count\" to read such ids as zeros and count them",
          feature.name, feature.rows - 1, feature.first_id, feature.first_sample);
    }
  }
}

void BadIds::restore(std::string_view name, std::int64_t count, std::int64_t first_id,
                     std::string first_sample) {
  Feature& feature = find(name);
  feature.count = count;
  feature.first_id = first_id;
  feature.first_sample = std::move(first_sample);
}

}  // namespace hstu
