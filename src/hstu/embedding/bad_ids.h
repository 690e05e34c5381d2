// BadIds: ids outside a table's declared range, counted by feature. Several features may share a table, and
// it is the feature that tells a user which column to repair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hstu {

enum class OnBadId { count, error };  // ids.on_bad in the configuration
// Throws UsageError unless `name` is "count" or "error".
OnBadId parse_on_bad_id(std::string_view name);

class BadIds {
 public:
  struct Feature {
    std::string name;
    std::string table;
    std::int64_t rows = 0;      // V of the table: good ids are 0 .. V - 1
    std::int64_t count = 0;     // bad ids so far
    std::int64_t first_id = 0;  // meaningful when count > 0
    std::string first_sample;   // as the caller describes it
  };
  // The sample that the id at place `i` of the inspected list belongs to, in words a user can look up:
  // "user 17, event 48213". Called for the first bad id only.
  using DescribeSample = std::function<std::string(std::int64_t i)>;

  explicit BadIds(OnBadId mode) : mode_(mode) {}

  // Returns the number to give to inspect().
  std::size_t add_feature(std::string name, std::string table, std::int64_t rows);

  // Counts the ids outside [0, V). In error mode the first one throws Error naming feature, id and sample.
  void inspect(std::size_t feature, std::span<const std::int64_t> ids, const DescribeSample& describe);

  const std::vector<Feature>& features() const { return features_; }
  // From a checkpoint: what was counted for the feature called `name`, which has to exist.
  void restore(std::string_view name, std::int64_t count, std::int64_t first_id, std::string first_sample);
  std::int64_t total() const;

 private:
  OnBadId mode_;
  std::vector<Feature> features_;
};

}  // namespace hstu
