#include "hstu/batching/user_contexts.h"

#include <cstdint>
#include <string>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

void check_column(const Dataset& dataset, const ContextualFeature& feature, const std::string& key) {
  const MappedColumn& column = dataset.context(key);
  for (std::int64_t u = 0; u < dataset.users(); ++u) {
    const UserEvents events = dataset.events_of(u);
    if (events.empty()) continue;
    const std::int64_t value = column[events.latest()];
    for (std::size_t r = 0; r < events.ranges(); ++r) {
      const PositionRange range = events.range(r);
      for (std::int64_t p = range.begin; p < range.end; ++p) {
        if (column[p] == value) continue;
        fail_usage(
            "features.context \"{}\": column {} of user {} is {} at one event and {} at another: every event "
            "of a history is asked for the next one, so that a context is the user's: give all events of a "
            "user one value, or remove it",
            feature.name, key, dataset.user_ids()[static_cast<std::size_t>(u)], column[p], value);
      }
    }
  }
}

}  // namespace

void check_user_contexts(const Dataset& dataset, const std::vector<ContextualFeature>& features) {
  const std::vector<std::string>& columns = dataset.manifest().context;
  const std::vector<std::string>& attributes = dataset.manifest().attributes;
  for (const ContextualFeature& feature : features) {
    for (const std::string& key : feature.keys) {
      const bool differs = key == "item" || key == "hour" || key == "weekday" || contains(attributes, key);
      if (differs)
        fail_usage(
            "features.context \"{}\": the key \"{}\" is not the user's: every event of a history is asked "
            "for the next one: take \"user\", or context columns of the dataset that are the same in all "
            "events of a user",
            feature.name, key);
      if (contains(columns, key)) check_column(dataset, feature, key);
    }
  }
}

}  // namespace hstu
