// Streams: queues of work on a device, done in order. Events: places in a stream that others wait for.
#pragma once

#include <cstddef>
#include <memory>

#include "hstu/base/clock.h"
#include "hstu/device/device.h"
#include "hstu/device/launch_groups.h"

struct CUstream_st;

namespace hstu {

class Event;
class MemoryPool;

// A stream as kernels see it: its type names the device, and overloads choose the kernel.
struct HostStream {};  // work is done when the call returns
struct CudaStream {
  CUstream_st* handle = nullptr;  // for hstu::cuda::launch (cuda/launch.cuh) and nothing else
  MemoryPool* memory = nullptr;   // of the same stream: where kernels take scratch memory from
};

// Copies are the same stream.
class Stream {
 public:
  // The host's: every call on it is done when it returns.
  Stream() = default;
  // A new one. Throws Error when the device cannot be used.
  explicit Stream(Device device);

  Device device() const { return device_; }
  bool operator==(const Stream& other) const { return device_ == other.device_ && handle_ == other.handle_; }
  // Of a GPU alone, for work of any kind: launches that were kept are put on it first.
  CUstream_st* cuda() const {
    hand_over();
    return handle_.get();
  }
  // The same without that: for CudaStream::handle, and for callers that have called hand_over().
  CUstream_st* cuda_for_launches() const { return handle_.get(); }

  // Returns when all work of this stream is done.
  void synchronize() const;
  // Work put on this stream from now on starts after `event` was reached.
  void wait(const Event& event) const;
  // The same for all that `other`, of the same device, holds now.
  void wait(const Stream& other) const;

  // Calls work(). Kernels that it launches may be kept until more than kernels is put on the stream or asked
  // of it, through Stream, Event, MemoryPool and copy_bytes. Until it returns this thread alone may use the
  // stream and its pool. An error in work() drops what is kept. Throws InternalError inside another
  // in_groups() of this thread.
  template <typename Work>
  void in_groups(const Work& work) const {
    if (groups_ == nullptr) return work();
    groups_->begin();
    try {
      work();
      groups_->end();
    } catch (...) {
      groups_->discard();
      throw;
    }
  }
  // Kernels that are launched from now on find what late work computes (LaunchGroups::Late).
  void launch_late() const {
    if (groups_ != nullptr) groups_->launch_late();
  }
  // What is kept is put on the stream.
  void hand_over() const {
    if (groups_ != nullptr) groups_->hand_over();
  }

 private:
  Device device_;
  std::shared_ptr<CUstream_st> handle_;   // null on the host
  std::shared_ptr<LaunchGroups> groups_;  // the same
};

// Copies are the same event.
class Event {
 public:
  // Only a timed event can be asked for milliseconds; it costs more.
  explicit Event(Device device = Device::host(), bool timed = false);

  // Marks the end of what `stream` (of the same device) holds now. An event never recorded counts as reached.
  void record(const Stream& stream);
  // The same, but inside Stream::in_groups() the event may be kept with the launches so far. It then marks a
  // later place, and until in_groups() returns only its thread may ask for the event or wait for it. Not for
  // timed events.
  void record_later(const Stream& stream);
  bool reached() const;
  void synchronize() const;  // returns when it is reached
  // Between two timed events of one device that were recorded (InternalError if not) and reached (Error if
  // not: synchronize() first).
  double milliseconds_since(const Event& earlier) const;

 private:
  friend class Stream;
  bool is_recorded() const;  // of a GPU; puts a record that is kept on its stream

  Device device_;
  bool timed_;
  std::shared_ptr<GpuEvent> of_gpu_;         // null on the host
  std::shared_ptr<Clock::time_point> time_;  // of the host
};

// Both put their work on the stream. Addresses are of the stream's device or of the host: an asynchronous
// copy needs host memory from transfer_memory (pinned_memory.h), which must live until it is done.
void copy_bytes(void* to, const void* from, std::size_t bytes, const Stream& stream);
void set_zero(void* to, std::size_t bytes, const Stream& stream);

}  // namespace hstu
