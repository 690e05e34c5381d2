// How often each id of a stream occurs.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/batching/distinct_ids.h"

namespace hstu {

class IdCounts {
 public:
  void add(std::int64_t id, std::int64_t times = 1);
  void add(const IdCounts& other);

  struct Sorted {
    std::vector<std::int64_t> ids, counts;  // ids ascending
  };
  Sorted sorted();

 private:
  DistinctIds distinct_;
  std::vector<std::int64_t> counts_;  // [number of an id]
};

}  // namespace hstu
