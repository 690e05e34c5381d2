// What a dataset is like, as far as a configuration depends on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/dataset/dataset.h"

namespace hstu {

// A context column of texts.
struct ContextProfile {
  std::string name;
  std::int64_t texts = 0;  // different ones
  // Of the label's entropy over the samples, the share that the texts explain: 1 if they decide the label.
  double explained = 0;
  std::string unlike = {};  // unlike_categories() of the texts
};

struct AttributeProfile {
  std::string name;
  std::string unlike = {};  // unlike_categories(), if it has texts
};

struct DatasetProfile {
  Path path;
  Manifest manifest;
  std::int64_t median_events = 0, long_events = 0;  // events of a user: the median, and that of 9 users in 10
  std::int64_t min_user_id = 0;
  // Of the dataset's anchor index, or a small one that leaves most users their events.
  std::int64_t min_history = 0;
  std::int64_t samples = 0;  // rankable events with min_history earlier ones; an estimate for large datasets
  // Of the latest tenth of the samples: the share whose user has at least five earlier events before it.
  double known_users = 0;
  double repeated = 0;  // the share of events whose user had the item before
  std::vector<ContextProfile> contexts;
  std::vector<AttributeProfile> attributes = {};
};

// Reads all users, and items, times, actions and contexts of up to five million events. UsageError if the
// folder is not a dataset or has no sample.
DatasetProfile profile_dataset(const Path& path);

}  // namespace hstu
