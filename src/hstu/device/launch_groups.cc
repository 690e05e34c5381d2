#include "hstu/device/launch_groups.h"

#include "hstu/base/error.h"
#include "hstu/device/cuda_calls.h"
#include "hstu/device/launch_queue.h"

namespace hstu {
namespace {

// Launches of a group: few, so that the driver has most of them when the last one is made.
constexpr std::size_t kMostLaunches = 24;

constexpr const char* kLost = "work for the GPU was lost after an error";

thread_local LaunchGroups* keeping = nullptr;

}  // namespace

LaunchGroups::LaunchGroups(CUstream_st* stream, int device)
    : stream_(stream), device_(device), graphs_(stream) {}

LaunchGroups::~LaunchGroups() {
  discard();
}

LaunchGroups* LaunchGroups::that_keep(const CUstream_st* stream) {
  return keeping != nullptr && keeping->stream_ == stream ? keeping : nullptr;
}

void LaunchGroups::begin() {
  require(keeping == nullptr, "this thread keeps launches of a stream already");
  if (queue_ == nullptr) {
    queue_ = std::make_unique<LaunchQueue>([this](LaunchList& launches) {
      cuda::make_current(device_);
      graphs_.put(launches);
    });
  }
  if (is_lost_) graphs_.clear();
  graphs_.begin();
  keeping = this;
  is_lost_ = false;
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
  try {
    if (is_queued_) queue_->finish();
  } catch (...) {  // the error that is under way is the first one
    is_lost_ = true;
  }
  is_queued_ = false;
  launched_.clear();
}

void LaunchGroups::keep(const LaunchShape& shape, std::span<const LaunchArgument> arguments) {
  if (!launched_.empty()) std::exchange(launched_, {}).clear();
  kept_.add(shape, arguments);
  if (kept_.size() < kMostLaunches) return;
  is_queued_ = true;
  queue_->add(kept_);
}

void LaunchGroups::keep(const std::shared_ptr<GpuEvent>& event) {
  event->kept_by = this;
  kept_.add(event);
}

void LaunchGroups::launch_late() {
  if (late_ == nullptr) return;
  std::unique_ptr<Late> late = std::move(late_);
  late->launch();
  launched_.push_back(std::move(late));
}

void LaunchGroups::hand_over() {
  launch_late();
  if (kept_.empty() && !is_queued_) return;
  check(!is_lost_, kLost);
  is_lost_ = true;
  if (is_queued_) queue_->finish();
  is_queued_ = false;
  graphs_.put(kept_);
  kept_.clear();
  is_lost_ = false;
}

}  // namespace hstu
