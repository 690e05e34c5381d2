#include "hstu/device/launch_graphs.h"

#include <algorithm>
#include <utility>

#include "hstu/device/cuda_calls.h"

namespace hstu {
namespace {

constexpr std::size_t kMostGraphs = 512;
constexpr std::size_t kFewLaunches = 2;  // that take the host less alone than as a graph

}  // namespace

void LaunchGraphs::begin() {
  if (graphs_ > kMostGraphs) clear();
  lists_ = 0;
}

void LaunchGraphs::clear() {
  groups_.clear();
  graphs_ = 0;
}

LaunchGraphs::Group& LaunchGraphs::group_of(const LaunchList& launches) {
  if (groups_.size() <= lists_) groups_.resize(lists_ + 1);
  std::vector<Group>& groups = groups_[lists_++];
  const auto known = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
    return group.launches.has_kernels_of(launches);
  });
  if (known != groups.end()) {
    for (std::size_t i = 0; i < launches.size(); ++i)
      if (!launches.is_same(i, known->launches)) cuda::change_launch(*known->graph, i, launches);
    return *known;
  }
  ++graphs_;
  return groups.emplace_back(Group{cuda::make_graph(launches), {}});
}

void LaunchGraphs::put(LaunchList& launches) {
  Group* group = nullptr;
  if (launches.size() > kFewLaunches) {
    group = &group_of(launches);
    cuda::launch(*group->graph, stream_);
  } else {
    for (std::size_t i = 0; i < launches.size(); ++i)
      cuda::put_on_stream(launches.shape(i), launches.arguments(i).data(), stream_);
  }
  for (const std::shared_ptr<GpuEvent>& event : launches.events()) {
    cuda::record(event->handle.get(), stream_);
    event->is_recorded = true;
  }
  launches.clear_events();
  if (group != nullptr) std::swap(group->launches, launches);
}

}  // namespace hstu
