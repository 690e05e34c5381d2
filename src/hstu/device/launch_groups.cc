#include "hstu/device/launch_groups.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/device/cuda_calls.h"

namespace hstu {
namespace {

constexpr std::size_t kMostGraphs = 512;
constexpr std::size_t kMostLaunches = 128;  // of a group, so that the GPU begins early enough
constexpr std::size_t kFewLaunches = 2;     // that take the host less alone than as a graph

constexpr const char* kLost = "work for the GPU was lost after an error";

thread_local LaunchGroups* keeping = nullptr;

}  // namespace

LaunchGroups* LaunchGroups::that_keep(const CUstream_st* stream) {
  return keeping != nullptr && keeping->stream_ == stream ? keeping : nullptr;
}

void LaunchGroups::begin() {
  require(keeping == nullptr, "this thread keeps launches of a stream already");
  // After an error a graph may have other arguments than its list.
  if (is_lost_ || graphs_ > kMostGraphs) groups_.clear(), graphs_ = 0;
  keeping = this;
  is_lost_ = false;
  handed_over_ = 0;
}

void LaunchGroups::end() {
  hand_over();
  check(!is_lost_, kLost);
  keeping = nullptr;
  launched_.clear();
}

void LaunchGroups::discard() noexcept {
  if (keeping == this) keeping = nullptr;
  kept_.clear();
  late_.reset();
  launched_.clear();
}

void LaunchGroups::keep(const LaunchShape& shape, std::span<const LaunchArgument> arguments) {
  if (!launched_.empty()) std::exchange(launched_, {}).clear();
  kept_.add(shape, arguments);
  if (kept_.size() >= kMostLaunches) hand_over();
}

LaunchGroups::Group& LaunchGroups::group_of_kept() {
  if (groups_.size() == handed_over_) groups_.emplace_back();
  std::vector<Group>& groups = groups_[handed_over_++];
  const auto known = std::find_if(groups.begin(), groups.end(),
                                  [&](const Group& group) { return group.launches.has_kernels_of(kept_); });
  if (known != groups.end()) {
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (!kept_.is_same(i, known->launches)) cuda::change_launch(*known->graph, i, kept_);
    return *known;
  }
  ++graphs_;
  return groups.emplace_back(Group{cuda::make_graph(kept_), {}});
}

void LaunchGroups::launch_late() {
  if (late_ == nullptr) return;
  std::unique_ptr<Late> late = std::move(late_);
  late->launch();
  launched_.push_back(std::move(late));
}

void LaunchGroups::hand_over() {
  launch_late();
  if (kept_.size() == 0) return;
  check(!is_lost_, kLost);
  is_lost_ = true;
  if (kept_.size() <= kFewLaunches) {
    for (std::size_t i = 0; i < kept_.size(); ++i)
      cuda::put_on_stream(kept_.shape(i), kept_.arguments(i).data(), stream_);
  } else {
    Group& group = group_of_kept();
    cuda::launch(*group.graph, stream_);
    std::swap(group.launches, kept_);
  }
  kept_.clear();
  is_lost_ = false;
}

}  // namespace hstu
