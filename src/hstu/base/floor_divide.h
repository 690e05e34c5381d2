// Division of times, which may be before 1970.
#pragma once

#include <cstdint>

namespace hstu {

// Rounds down, so that negative times keep their order and distance. `divisor` > 0.
inline std::int64_t floor_divide(std::int64_t value, std::int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

}  // namespace hstu
