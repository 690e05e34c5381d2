// LaunchGroups: the launches of kernels on a GPU's stream, kept back and handed to the driver many at a time,
// as CUDA graphs. A launch alone takes the host several times as long: small models are bound by that. The
// GPU does the same work in the same order, but for launches that need nothing of each other.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hstu/device/launch_list.h"

struct CUstream_st;

namespace hstu {

namespace cuda {
struct LaunchGraph;
}

// Of one stream (Stream::in_groups, Stream::hand_over), which one thread uses meanwhile.
class LaunchGroups {
 public:
  explicit LaunchGroups(CUstream_st* stream) : stream_(stream) {}
  ~LaunchGroups() { discard(); }
  LaunchGroups(const LaunchGroups&) = delete;
  LaunchGroups& operator=(const LaunchGroups&) = delete;

  // Work that nothing on the stream needs before all else that is kept: it becomes launches when these are
  // handed over, so that many pieces of it can be one. It holds the memory that it needs.
  class Late {
   public:
    virtual ~Late() = default;
    // Launches all of it. Allocates and frees no memory of the stream's pool, which may be locked.
    virtual void launch() = 0;
  };

  // Those that keep the launches of a stream in the calling thread now; null if none do.
  static LaunchGroups* that_keep(const CUstream_st* stream);

  // Between begin() and end(), or discard() after an error, launches are kept.
  void begin();
  void end();
  void discard() noexcept;

  void keep(const LaunchShape& shape, std::span<const LaunchArgument> arguments);
  // The late work that is kept; null without any.
  Late* late() const { return late_.get(); }
  void set_late(std::unique_ptr<Late> late) { late_ = std::move(late); }
  // The stream gets what is kept. After an error it throws again until begin(), and so does end(), as work is
  // missing.
  void hand_over();

 private:
  // A group of an earlier step, which takes the sizes and arguments of a later one with the same kernels:
  // steps repeat the same kernels, so few graphs are made, and launches that have not changed cost nothing.
  struct Group {
    std::shared_ptr<cuda::LaunchGraph> graph;
    LaunchList launches;
  };
  Group& group_of_kept();
  void launch_late();

  CUstream_st* stream_;
  bool is_lost_ = false;  // work that a hand_over() did not put on the stream
  LaunchList kept_;
  std::unique_ptr<Late> late_;
  std::vector<std::unique_ptr<Late>> launched_;  // gives its memory back when no pool is locked
  std::size_t handed_over_ = 0;                  // groups since begin()
  std::vector<std::vector<Group>> groups_;       // by number since begin()
  std::size_t graphs_ = 0;                       // in groups_
};

}  // namespace hstu
