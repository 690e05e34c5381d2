// GpuEvent: what an Event of a GPU refers to.
#pragma once

#include <atomic>
#include <memory>

struct CUevent_st;

namespace hstu {

class LaunchGroups;

struct GpuEvent {
  std::shared_ptr<CUevent_st> handle;  // may have served another event before
  std::atomic<bool> is_recorded = false;
  std::atomic<LaunchGroups*> kept_by = nullptr;  // while its record is kept with launches
};

}  // namespace hstu
