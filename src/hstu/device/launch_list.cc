#include "hstu/device/launch_list.h"

#include <algorithm>
#include <cstring>

namespace hstu {
namespace {

constexpr std::size_t kArgumentAlignment = 16;

}  // namespace

void LaunchList::add(const LaunchShape& shape, std::span<const LaunchArgument> arguments) {
  Launch launch{shape, places_.size(), 0, bytes_.size(), 0};
  for (const LaunchArgument argument : arguments) {
    places_.push_back(bytes_.size());
    bytes_.insert(bytes_.end(), argument.begin(), argument.end());
    bytes_.resize((bytes_.size() + kArgumentAlignment - 1) / kArgumentAlignment * kArgumentAlignment);
  }
  launch.end_argument = places_.size();
  launch.end = bytes_.size();
  launches_.push_back(launch);
}

void LaunchList::clear() {
  launches_.clear();
  places_.clear();
  bytes_.clear();
  clear_events();
}

void LaunchList::clear_events() {
  for (const std::shared_ptr<GpuEvent>& event : events_) event->kept_by = nullptr;
  events_.clear();
}

std::vector<void*> LaunchList::arguments(std::size_t i) const {
  const Launch& launch = launches_[i];
  std::vector<void*> pointers;
  pointers.reserve(launch.end_argument - launch.first_argument);
  // The driver takes pointers to what may be written, and writes nothing.
  for (std::size_t a = launch.first_argument; a < launch.end_argument; ++a)
    pointers.push_back(const_cast<std::byte*>(bytes_.data()) + places_[a]);
  return pointers;
}

bool LaunchList::is_same(std::size_t i, const LaunchList& other) const {
  const Launch &a = launches_[i], &b = other.launches_[i];
  return a.shape == b.shape && a.end - a.begin == b.end - b.begin &&
         std::memcmp(bytes_.data() + a.begin, other.bytes_.data() + b.begin, a.end - a.begin) == 0;
}

bool LaunchList::has_kernels_of(const LaunchList& other) const {
  return std::equal(launches_.begin(), launches_.end(), other.launches_.begin(), other.launches_.end(),
                    [](const Launch& a, const Launch& b) {
                      return a.shape.kernel == b.shape.kernel && a.shape.cluster == b.shape.cluster &&
                             a.shape.beside == b.shape.beside;
                    });
}

}  // namespace hstu
