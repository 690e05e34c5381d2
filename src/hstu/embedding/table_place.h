// Where the rows of a table and their optimizer's state are.
#pragma once

#include "hstu/base/choice.h"

namespace hstu {

enum class TablePlace {
  device,     // in the memory of the device that trains
  cache,      // in host memory, and those in use in a cache in the memory of that device
  host,       // in host memory
  disk,       // in a file, and those in use in a cache in host memory
  automatic,  // the first of device, cache and host that fits: the planner replaces it
              // (plan/table_places.h)
};
inline constexpr Choice<TablePlace> kTablePlaces[] = {{"device", TablePlace::device},
                                                      {"cache", TablePlace::cache},
                                                      {"host", TablePlace::host},
                                                      {"disk", TablePlace::disk},
                                                      {"auto", TablePlace::automatic}};

}  // namespace hstu
