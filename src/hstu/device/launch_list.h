// Launches of kernels as data, for code that is compiled without CUDA too: what the driver needs to know of
// each, with copies of its arguments.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hstu/device/gpu_event.h"

namespace hstu {

struct LaunchShape {
  const char* what = "";         // for messages
  const void* kernel = nullptr;  // the function on the host that names it
  std::array<unsigned, 3> blocks{1, 1, 1}, threads{1, 1, 1};
  unsigned shared_bytes = 0;  // beyond what the kernel declares
  unsigned cluster = 1;       // blocks of a cluster, along the first dimension
  bool beside = false;        // may run at the same time as the launch before: neither needs the other

  bool operator==(const LaunchShape&) const = default;
};

using LaunchArgument = std::span<const std::byte>;  // the bytes of one, of a type that can be copied so

class LaunchList {
 public:
  LaunchList() = default;
  LaunchList(LaunchList&&) = default;
  LaunchList& operator=(LaunchList&&) = default;
  ~LaunchList() { clear(); }

  void add(const LaunchShape& shape, std::span<const LaunchArgument> arguments);
  // An event to record after all launches.
  void add(std::shared_ptr<GpuEvent> event) { events_.push_back(std::move(event)); }
  void clear();
  // Forgets the events, which are kept no more.
  void clear_events();

  std::size_t size() const { return launches_.size(); }
  const std::vector<std::shared_ptr<GpuEvent>>& events() const { return events_; }
  bool empty() const { return launches_.empty() && events_.empty(); }
  const LaunchShape& shape(std::size_t i) const { return launches_[i].shape; }
  // Pointers to the arguments of launch i, valid until the list changes.
  std::vector<void*> arguments(std::size_t i) const;
  // Launch i of both lists has the same shape and the same bytes of arguments.
  bool is_same(std::size_t i, const LaunchList& other) const;
  // Both have the same kernels in the same order, launched in the same way: only sizes and arguments differ.
  bool has_kernels_of(const LaunchList& other) const;

 private:
  struct Launch {
    LaunchShape shape;
    std::size_t first_argument, end_argument;  // in places_
    std::size_t begin, end;                    // in bytes_
  };
  std::vector<Launch> launches_;
  std::vector<std::size_t> places_;  // of the arguments in bytes_
  std::vector<std::byte> bytes_;
  std::vector<std::shared_ptr<GpuEvent>> events_;
};

}  // namespace hstu
