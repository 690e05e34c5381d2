// Small datasets for tests, from a table that is held in memory.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hstu/dataset/dataset.h"
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

// Adds ordered events to a dataset as a segment, as hstu prepare --append does.
inline Manifest append_segment(const Path& dataset, const Manifest& description, const EventTable& events) {
  const Dataset before(dataset);
  const Path folder = segment_folder(dataset, std::ssize(before.segments()));
  std::filesystem::create_directories(folder);
  DatasetWriter writer(folder, description);
  writer.append(ordered(events));
  return writer.finish({}, {}, {}, [&](Manifest& manifest) {
    EventCounts counts = before.manifest().counts;
    counts.events += manifest.counts.events;
    counts.rankable += manifest.counts.rankable;
    counts.positives += manifest.counts.positives;
    manifest.extends = {.dataset = before.manifest().id, .counts = counts};  // of the same users and items
  });
}

}  // namespace hstu
