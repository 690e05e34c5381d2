// LaunchGroups: the launches of kernels on a GPU's stream and records of events after them, kept back and
// handed to the driver many at a time, while the thread that makes them goes on. The GPU does the same work
// in the same order, but for launches that need nothing of each other.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hstu/device/launch_graphs.h"
#include "hstu/device/launch_list.h"

struct CUstream_st;

namespace hstu {

class LaunchQueue;

// Of one stream (Stream::in_groups, Stream::hand_over), which one thread uses meanwhile.
class LaunchGroups {
 public:
  // Work that nothing on the stream needs until launch_late(): then it becomes launches, so that many pieces
  // of it can be one. It holds the memory that it needs.
  class Late {
   public:
    virtual ~Late() = default;
    // Launches all of it. Allocates and frees no memory of the stream's pool, which may be locked.
    virtual void launch() = 0;
  };

  // `device`: the number of the stream's GPU.
  LaunchGroups(CUstream_st* stream, int device);
  ~LaunchGroups();
  LaunchGroups(const LaunchGroups&) = delete;
  LaunchGroups& operator=(const LaunchGroups&) = delete;

  // Those that keep the launches of a stream in the calling thread now; null if none do.
  static LaunchGroups* that_keep(const CUstream_st* stream);

  // Between begin() and end(), or discard() after an error, launches are kept.
  void begin();
  void end();
  void discard() noexcept;

  void keep(const LaunchShape& shape, std::span<const LaunchArgument> arguments);
  // The record of an event, after the launches so far.
  void keep(const std::shared_ptr<GpuEvent>& event);
  // The late work that is kept; null without any.
  Late* late() const { return late_.get(); }
  void set_late(std::unique_ptr<Late> late) { late_ = std::move(late); }
  // Late work becomes launches: whatever is kept from now on finds its results.
  void launch_late();
  // Returns when all that was kept is on the stream. After an error it throws again until begin(), and so
  // does end(), as work is missing.
  void hand_over();

 private:
  CUstream_st* stream_;
  int device_;
  bool is_lost_ = false;  // work that is not on the stream
  LaunchList kept_;
  std::unique_ptr<Late> late_;
  std::vector<std::unique_ptr<Late>> launched_;  // gives its memory back when no pool is locked
  LaunchGraphs graphs_;
  bool is_queued_ = false;              // lists may be in the queue, whose thread uses graphs_ then
  std::unique_ptr<LaunchQueue> queue_;  // from the first begin() on; ends before graphs_
};

}  // namespace hstu
