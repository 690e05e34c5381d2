// Events in memory that are not in a dataset's files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hstu/dataset/dataset.h"

namespace hstu {

class EventLists {
 public:
  // Of so many context columns.
  explicit EventLists(std::size_t columns = 0) : context_(columns) {}

  // Removes all events; keeps the memory.
  void clear(std::size_t columns);
  // Appends the events [begin, end) of `from`, or those at `places`. A context column of `from` without
  // elements is one of zeros.
  void append(const EventColumns& from, std::size_t begin, std::size_t end);
  void append(const EventColumns& from, std::span<const std::int64_t> places);
  // Appends the last `most` events of `events` in a dataset, of its first context columns.
  void append(const Dataset& from, const UserEvents& events, std::int64_t most);

  std::size_t size() const { return item_.size(); }
  // Of all events; valid until they change.
  void view(EventColumns& columns) const;

 private:
  template <typename Body>
  void append_columns(const EventColumns& from, const Body& body);

  std::vector<std::int64_t> item_, time_;
  std::vector<std::uint8_t> action_;
  std::vector<std::vector<std::int64_t>> context_;
};

}  // namespace hstu
