// Leaves out, or counts, events that their user has had before.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "hstu/dataset/event_filters.h"
#include "hstu/events/event_stage.h"

namespace hstu {

class DuplicateFilter : public EventStage {
 public:
  // Holds the events of one user. Error naming a user whose events take more than `memory` bytes.
  DuplicateFilter(const EventFilters& rules, std::int64_t memory, EventSink& next);
  void append(EventTable events) override;
  void finish() override;

  std::int64_t duplicates() const { return duplicates_; }

 private:
  struct Place {
    std::uint32_t table, row;
  };
  // Hash and equality of events, as the rules say which are the same. They read the tables that are held.
  struct Same {
    const DuplicateFilter* filter;
    std::size_t operator()(Place place) const;
    bool operator()(Place a, Place b) const;
  };
  using Seen = std::unordered_set<Place, Same, Same>;

  void hold(EventTable events);
  void release();
  void look_at(Place place, std::vector<std::uint8_t>& keep);

  EventFilters rules_;
  std::int64_t memory_, bytes_ = 0;
  std::vector<EventTable> held_;  // the last one may begin with the next user
  Seen seen_;                     // of one user
  std::int64_t duplicates_ = 0;
};

}  // namespace hstu
