// Small datasets for tests, from a table that is held in memory.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hstu/dataset/user_order.h"
#include "hstu/dataset/writer.h"

namespace hstu {

inline ItemAttribute item_attribute(std::string name, const std::vector<std::int64_t>& values) {
  ItemAttribute attribute;
  attribute.name = std::move(name);
  attribute.values.append(values);
  return attribute;
}

// Orders the events, as hstu prepare does, and writes them into the existing folder `folder`.
inline Manifest write_dataset(const Path& folder, const Manifest& description, const EventTable& events,
                              const std::vector<ItemAttribute>& attributes = {}) {
  DatasetWriter writer(folder, description);
  writer.append(ordered(events));
  return writer.finish(attributes);
}

}  // namespace hstu
