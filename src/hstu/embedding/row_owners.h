// Which rank holds a row, where the rows of tables are split over the ranks of a group.
#pragma once

#include <cstdint>

#include "hstu/base/random.h"

namespace hstu {

struct RowOwners {
  int rank = 0, ranks = 1;

  // Hashed apart from the tables' own index, which would otherwise fill every ranks-th of its places.
  int owner(std::int64_t id) const {
    constexpr std::uint64_t kKey = 0x9E6C63D0876A9A47u;
    return static_cast<int>(mix64(static_cast<std::uint64_t>(id) ^ kKey) % static_cast<std::uint64_t>(ranks));
  }
  bool owns(std::int64_t id) const { return ranks == 1 || owner(id) == rank; }
};

}  // namespace hstu
