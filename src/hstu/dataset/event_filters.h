// Which events of a log stay, by the numbers of events of their users and items, and what became of the rest.
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"

namespace hstu {

// What happens to events that a user has had before.
enum class Duplicates { kKeep, kCount, kFirst, kLast };  // the last two leave one of them
inline constexpr Choice<Duplicates> kDuplicates[] = {{"keep", Duplicates::kKeep},
                                                     {"count", Duplicates::kCount},
                                                     {"first", Duplicates::kFirst},
                                                     {"last", Duplicates::kLast}};

// Which events of a user are the same: those with an item, or those that are equal in everything.
enum class SameEvent { kItem, kEvent };
inline constexpr Choice<SameEvent> kSameEvents[] = {{"item", SameEvent::kItem}, {"event", SameEvent::kEvent}};

// In the order in which they are applied. 0: no limit.
struct EventFilters {
  Duplicates duplicates = Duplicates::kKeep;
  SameEvent duplicates_of = SameEvent::kItem;
  std::int64_t longest_user = 0;   // users with more events leave
  std::int64_t core = 0;           // users and items with fewer events leave,
  bool core_once = false;          // by the counts before anyone left; otherwise until none has fewer
  std::int64_t shortest_user = 0;  // users with fewer events leave

  bool counts() const { return longest_user > 0 || core > 0 || shortest_user > 0; }
  bool active() const { return duplicates != Duplicates::kKeep || counts(); }
  bool operator==(const EventFilters&) const = default;
};

// What a filter left out.
struct LeftOut {
  std::int64_t users = 0, items = 0, events = 0;
  bool operator==(const LeftOut&) const = default;
};

struct FilterReport {
  EventFilters rules = {};
  std::int64_t duplicates = 0;  // events but the first of their kind; none of them left if they were counted
  LeftOut longest = {}, core = {}, shortest = {};
  std::int64_t core_rounds = 0;
  bool operator==(const FilterReport&) const = default;
};

}  // namespace hstu
