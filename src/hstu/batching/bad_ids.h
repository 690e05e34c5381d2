// BadIds: ids outside a table's declared range, counted by feature and occurrence: once for each token
// (history event or candidate) or, for contextual features, each sample that has such an id. A count does not
// depend on how samples form batches.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/choice.h"
#include "hstu/batching/batch_layout.h"

namespace hstu {

enum class OnBadId { count, error };
inline constexpr Choice<OnBadId> kOnBadId[] = {{"count", OnBadId::count}, {"error", OnBadId::error}};

class BadIds {
 public:
  struct Feature {
    std::string name;           // of the feature
    std::int64_t rows = 0;      // V of the table: good ids are 0 .. V - 1
    std::int64_t count = 0;     // occurrences so far
    std::int64_t first_id = 0;  // defined if count > 0
    std::string first_sample;   // "the sample of user 17 at event 48213"
  };

  BadIds() = default;
  BadIds(OnBadId mode, const std::vector<FeatureSpec>& features);

  // Adds the counts of a batch. In error mode the first bad id throws Error naming feature, id and sample.
  void add(std::span<const BadIdCount> counts);

  const std::vector<Feature>& features() const { return features_; }
  // Restores the counts of the feature `name`, which must exist, from a checkpoint.
  void restore(std::string_view name, std::int64_t count, std::int64_t first_id, std::string first_sample);

 private:
  Feature& find(std::string_view name);

  OnBadId mode_ = OnBadId::count;
  std::vector<Feature> features_;
};

}  // namespace hstu
