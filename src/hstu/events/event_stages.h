// All that a schema does to the ordered events of a log before they are written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/event_filters.h"
#include "hstu/dataset/event_table.h"
#include "hstu/events/schema.h"

namespace hstu {

class CountFilter;
class DuplicateFilter;
class EventStage;

// Duplicates, limits of users and items, the order of ties, times that are an order: only those that the
// schema asks for.
class EventStages {
 public:
  // `scratch` exists; limits write the events to a file in it. `memory` bytes at most.
  EventStages(const Schema& schema, const Path& scratch, std::int64_t memory, EventSink& last);
  ~EventStages();
  EventStages(const EventStages&) = delete;
  EventStages& operator=(const EventStages&) = delete;

  EventSink& first() { return *first_; }
  void finish();
  // Nothing if the schema has no filters.
  std::optional<FilterReport> report() const;

 private:
  template <typename Stage, typename... Arguments>
  Stage* put_before(Arguments&&... arguments);

  EventFilters rules_;
  EventSink* first_;
  std::vector<std::unique_ptr<EventStage>> stages_;  // the last one first
  DuplicateFilter* duplicates_ = nullptr;
  CountFilter* counts_ = nullptr;
};

}  // namespace hstu
