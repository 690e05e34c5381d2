// EventTable: events as columns, in the order of the log, after a schema gave every column its meaning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/dataset/integer_column.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

// N events; about 14 bytes each for Yambda.
struct EventTable {
  IntegerColumn user{IntegerColumn::Width::k4Bytes};  // (N) original ids, not negative
  IntegerColumn time{IntegerColumn::Width::k4Bytes};  // (N) seconds
  IntegerColumn item{IntegerColumn::Width::k4Bytes};  // (N) original ids, not negative
  std::vector<std::uint8_t> action;                   // (N) action bits, and kRankableBit
  std::vector<IntegerColumn> context;                 // [context column](N)

  std::int64_t size() const { return static_cast<std::int64_t>(action.size()); }
  void reserve(std::int64_t events);
  // Keeps the events whose mask is set, in their order.
  void keep(const std::vector<bool>& mask);
  EventTable select(const std::vector<bool>& mask) const;
};

// An attribute of items: values[item id], 0 = unmapped; ids beyond the end are unmapped too.
struct ItemAttribute {
  std::string name;
  std::vector<std::int64_t> values;
};

// Positives are rankable events that have `label_bit`.
EventCounts count_events(const EventTable& events, std::uint8_t label_bit);

// Of a table that is not empty.
TimeRange time_range(const EventTable& events);

}  // namespace hstu
