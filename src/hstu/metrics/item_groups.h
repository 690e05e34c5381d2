// Items by how often they occur in training: head, torso and tail.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/base/choice.h"

namespace hstu {

enum class ItemGroup : std::uint8_t { head, torso, tail };
inline constexpr Choice<ItemGroup> kItemGroups[] = {
    {"head", ItemGroup::head}, {"torso", ItemGroup::torso}, {"tail", ItemGroup::tail}};

// In the order of frequency (count descending, id ascending) the items up to a third of all events are the
// head, those up to two thirds the torso, and the rest, with the items that training has not, the tail: an
// item belongs to the part in which its first event is.
class ItemGroups {
 public:
  // ids (V) ascending, counts (V) of events in training.
  ItemGroups(std::span<const std::int64_t> ids, std::span<const std::int64_t> counts);

  ItemGroup of(std::int64_t id) const;  // tail for an unknown id

 private:
  std::vector<std::int64_t> ids_;  // (V)
  std::vector<ItemGroup> groups_;  // (V)
};

}  // namespace hstu
