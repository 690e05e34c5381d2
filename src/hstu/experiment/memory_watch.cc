#include "hstu/experiment/memory_watch.h"

#include "hstu/device/machine.h"
#include "hstu/experiment/over_ranks.h"

namespace hstu {

Json MemoryWatch::look(const Context& compute, Communicator& comm) {
  if (share_ <= 0) return nullptr;
  const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const MemoryFigures figures = compute.memory->figures();
  const std::int64_t total = memory_of(compute.device()).total;
  const double beyond =
      total > 0 ? static_cast<double>(figures.reserved - figures.in_use) / static_cast<double>(total) : 0;
  if (beyond > share_) {
    compute.memory->trim();
    ++trims_;
  }
  const Json mine{{"in_use_mib", mib(figures.in_use)},
                  {"held_mib", mib(figures.reserved)},
                  {"beyond_share", beyond},
                  {"trims", trims_},
                  {"device_mib", mib(total)},
                  {"device_free_mib", mib(memory_of(compute.device()).free)}};
  return gather(std::vector<Json>{mine}, comm);
}

}  // namespace hstu
