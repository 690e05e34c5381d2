#include "hstu/embedding/bad_ids.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {

OnBadId parse_on_bad_id(std::string_view name) {
  if (name == "count") return OnBadId::count;
  if (name == "error") return OnBadId::error;
  fail_usage("ids.on_bad: expected \"count\" or \"error\", found \"{}\"", name);
}

std::size_t BadIds::add_feature(std::string name, std::string table, std::int64_t rows) {
  features_.push_back({.name = std::move(name), .table = std::move(table), .rows = rows, .first_sample = {}});
  return features_.size() - 1;
}

void BadIds::inspect(std::size_t feature, std::span<const std::int64_t> ids, const DescribeSample& describe) {
  Feature& f = features_.at(feature);
  // One unsigned comparison: a negative id is a huge one.
  const auto bad = [rows = static_cast<std::uint64_t>(f.rows)](std::int64_t id) {
    return static_cast<std::uint64_t>(id) >= rows;
  };
  const std::int64_t found = std::count_if(ids.begin(), ids.end(), bad);
  if (found == 0) return;
  if (f.count == 0) {
    const auto first = std::find_if(ids.begin(), ids.end(), bad);
    f.first_id = *first;
    f.first_sample = describe(first - ids.begin());
  }
  f.count += found;
  if (mode_ == OnBadId::error) {
    fail(
        "feature \"{}\": expected ids from 0 to {} (table \"{}\"), found id {} in sample {}: repair the "
        "data, "
        "declare more rows, or set ids.on_bad = \"count\" to read such ids as zeros and count them",
        f.name, f.rows - 1, f.table, f.first_id, f.first_sample);
  }
}

void BadIds::restore(std::string_view name, std::int64_t count, std::int64_t first_id,
                     std::string first_sample) {
  const auto feature = std::find_if(features_.begin(), features_.end(),
                                    [&](const Feature& candidate) { return candidate.name == name; });
  check(feature != features_.end(), "bad ids were counted for a feature \"{}\" that is not there", name);
  feature->count = count;
  feature->first_id = first_id;
  feature->first_sample = std::move(first_sample);
}

std::int64_t BadIds::total() const {
  std::int64_t total = 0;
  for (const Feature& feature : features_) total += feature.count;
  return total;
}

}  // namespace hstu
