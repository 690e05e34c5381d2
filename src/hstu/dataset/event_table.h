// EventTable: a part of a log's events as columns, interpreted by a schema.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/dataset/integer_column.h"

namespace hstu {

// N events; about 14 bytes each for Yambda.
struct EventTable {
  IntegerColumn user;                // (N) original ids, not negative
  IntegerColumn time;                // (N) seconds
  IntegerColumn nanoseconds;         // (N) within the second, for the order alone; empty: all 0
  IntegerColumn item;                // (N) original ids, not negative
  std::vector<std::uint8_t> action;  // (N) action bits, and kRankableBit
  // [context column](N); of a log with weights then the bits of the weights (f32)
  std::vector<IntegerColumn> context;

  std::int64_t size() const { return static_cast<std::int64_t>(action.size()); }
  std::int64_t bytes() const;
  // Appends events with as many context columns; to a table without events, any.
  void append(const EventTable& events);
  // Keeps the events whose mask is not 0, in their order.
  void keep(std::span<const std::uint8_t> mask);
  // The events at `rows`, in that order.
  EventTable gather(std::span<const std::uint32_t> rows) const;
};

// Receives events table by table, all in order of (user, time).
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void append(EventTable events) = 0;
};

// An attribute of items: values[item id], or values[position of the item in item_ids.npy] if the dataset has
// that file. 0 = unmapped; items beyond the end are unmapped too.
struct ItemAttribute {
  std::string name;
  IntegerColumn values{IntegerColumn::Width::k4Bytes};
};

}  // namespace hstu
