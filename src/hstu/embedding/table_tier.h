// Where the rows of a table and their optimizer's state are.
#pragma once

#include "hstu/base/choice.h"

namespace hstu {

enum class TableTier {
  device,     // in the memory of the device that trains
  cache,      // in host memory, and those in use in a cache in the memory of that device
  host,       // in host memory
  disk,       // in a file, and those in use in a cache in host memory
  automatic,  // the first of device, cache and host that fits: the planner replaces it
              // (plan/table_tiers.h)
};
inline constexpr Choice<TableTier> kTableTiers[] = {{"device", TableTier::device},
                                                    {"cache", TableTier::cache},
                                                    {"host", TableTier::host},
                                                    {"disk", TableTier::disk},
                                                    {"auto", TableTier::automatic}};

}  // namespace hstu
