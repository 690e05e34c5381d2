// Events of a GPU. One that is given back serves again: a step of a small model uses a dozen, and the driver
// takes microseconds to make each.
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda_calls.h"

namespace hstu::cuda {
namespace {

class UnusedEvents {
 public:
  // Null if there is none.
  cudaEvent_t take(int device, bool timed) {
    const std::scoped_lock lock(mutex_);
    std::vector<cudaEvent_t>& events = events_[{device, timed}];
    if (events.empty()) return nullptr;
    const cudaEvent_t event = events.back();
    events.pop_back();
    return event;
  }
  void put(int device, bool timed, cudaEvent_t event) {
    const std::scoped_lock lock(mutex_);
    events_[{device, timed}].push_back(event);
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, bool>, std::vector<cudaEvent_t>> events_;
};

// Never destroyed: events may end after it, and the driver frees what a process leaves.
UnusedEvents& unused() {
  static UnusedEvents& events = *new UnusedEvents;
  return events;
}

cudaEvent_t made(int device, bool timed) {
  const CurrentDevice current(device);
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming),
             "making an event");
  return event;
}

}  // namespace

std::shared_ptr<CUevent_st> new_event(int device, bool timed) {
  cudaEvent_t event = unused().take(device, timed);
  if (event == nullptr) event = made(device, timed);
  return {event, [device, timed](cudaEvent_t e) { unused().put(device, timed, e); }};
}

}  // namespace hstu::cuda
