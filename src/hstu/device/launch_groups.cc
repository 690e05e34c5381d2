#include "hstu/device/launch_groups.h"

#include <utility>

#include "hstu/base/error.h"
#include "hstu/device/cuda_calls.h"

namespace hstu {
namespace {

constexpr std::size_t kMostExecutables = 512;

}  // namespace

void LaunchGroups::begin() {
  require(!keeps_, "launches of this stream are kept already");
  keeps_ = true;
  is_lost_ = false;
  group_ = 0;
  if (executables_.size() > kMostExecutables) executables_.clear();
}

void LaunchGroups::end() {
  hand_over();
  check(!is_lost_, "work for the GPU was lost after an error");
  keeps_ = false;
}

void LaunchGroups::discard() noexcept {
  keeps_ = false;
  if (std::exchange(is_open_, false)) cuda::drop_capture(stream_);
}

void LaunchGroups::open() {
  if (is_open_) return;
  cuda::begin_capture(stream_);
  is_open_ = true;
  operations_ = 0;
}

void LaunchGroups::hand_over() {
  if (!std::exchange(is_open_, false)) return;
  is_lost_ = true;
  const std::shared_ptr<CUgraph_st> graph = cuda::end_capture(stream_);
  std::string kinds = cuda::kinds_of_nodes(graph.get());
  if (!kinds.empty()) {
    std::shared_ptr<CUgraphExec_st>& executable = executables_[{group_++, std::move(kinds)}];
    if (executable == nullptr || !cuda::update(executable.get(), graph.get()))
      executable = cuda::make_executable(graph.get());
    cuda::launch(executable.get(), stream_);
  }
  is_lost_ = false;
}

}  // namespace hstu
