// StageTimer: the trace that measures. It marks the stream before and after each range and reads the marks
// later, so it never makes the device wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/tensor/context.h"

namespace hstu {

// One range. Times are milliseconds since StageTimer::origin().
struct StageTime {
  std::string_view name;
  int depth = 0;                    // 0: inside no other
  std::ptrdiff_t outer = -1;        // the range around it, an index of the same list; -1: none
  double begin_ms = 0, end_ms = 0;  // of its work on the stream: CUDA events on a GPU, the clock on the host
  double host_begin_ms = 0, host_end_ms = 0;  // of the thread that puts the work on the stream
  std::int64_t bytes = 0;                     // Trace::touches_bytes, of the ranges inside too
  std::vector<std::int64_t> sizes = {};       // Trace::works_on
  std::int64_t flops = 0;                     // the same, of the ranges inside too
  // What the pool has handed out when the range begins and when it ends, for the stream's work up to there;
  // -1: no pool is watched.
  std::int64_t memory_begin = -1, memory_end = -1;

  double ms() const { return end_ms - begin_ms; }
};

// Used by one thread. Marks are kept for the next ranges: after the first step it allocates nothing on the
// device.
class StageTimer final : public Trace {
 public:
  // Measures ranges inside fewer than `depths` others; `also` (null: none) is told of all.
  // `memory` (null: none): a pool of the same stream, to be watched.
  explicit StageTimer(const Stream& stream, int depths = std::numeric_limits<int>::max(),
                      Trace* also = nullptr, std::shared_ptr<const MemoryPool> memory = nullptr);

  void begin(std::string_view name) override;
  void end() override;
  void touches_bytes(std::int64_t bytes) override;
  void works_on(std::initializer_list<std::int64_t> sizes, std::int64_t flops) override;

  // Forgets all ranges; times count from now. Call it outside of ranges.
  void restart();
  Clock::time_point origin() const { return origin_; }
  // The ranges since restart() or the last take(), in the order of their begins; forgets them. Waits until
  // the stream has reached the last mark. Call it outside of ranges.
  std::vector<StageTime> take();

 private:
  struct Range {
    StageTime time;
    std::size_t begin, end;  // marks
    Clock::time_point host_begin, host_end;
  };
  std::size_t mark();
  std::int64_t bytes_in_use() const { return memory_ == nullptr ? -1 : memory_->figures().in_use; }

  Stream stream_;
  int depths_;
  Trace* also_;
  std::shared_ptr<const MemoryPool> memory_;
  std::vector<Event> marks_;
  std::size_t used_ = 0;  // marks
  Event origin_mark_;
  Clock::time_point origin_;
  std::vector<Range> ranges_;
  std::vector<std::ptrdiff_t> open_;  // indices of ranges_; -1: not measured
};

}  // namespace hstu
