// Leaves out users and items by their numbers of events. The events wait on disk until all are counted.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hstu/dataset/event_filters.h"
#include "hstu/dataset/event_run.h"
#include "hstu/events/event_stage.h"
#include "hstu/events/item_table.h"

namespace hstu {

class CountFilter : public EventStage {
 public:
  // Writes the file `spill`, which is removed at the end, and reads it once for each round of counting. In
  // memory: a bit for each user, and an ItemTable of at most `memory` bytes.
  CountFilter(const EventFilters& rules, Path spill, std::int64_t memory, EventSink& next);
  ~CountFilter() override;
  CountFilter(const CountFilter&) = delete;
  CountFilter& operator=(const CountFilter&) = delete;
  void append(EventTable events) override;
  // UsageError naming the rule if no event is left.
  void finish() override;

  // Fills in what the limits left out.
  void report(FilterReport& report) const;

 private:
  template <typename Look, typename End>
  void for_rows(const Look& look, const End& end) const;
  void drop_long_users();
  bool narrow_core();
  void drop_short_users();
  void emit();

  EventFilters rules_;
  Path spill_;
  std::optional<RunWriter> writer_;
  std::int64_t events_ = 0;
  ItemTable items_;
  std::vector<bool> users_;  // in the order of the events: the user stays
  LeftOut longest_, core_, shortest_;
  std::int64_t rounds_ = 0;
};

}  // namespace hstu
