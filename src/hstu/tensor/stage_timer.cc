#include "hstu/tensor/stage_timer.h"

#include <utility>

#include "hstu/base/error.h"

namespace hstu {

StageTimer::StageTimer(const Stream& stream, int depths, Trace* also,
                       std::shared_ptr<const MemoryPool> memory)
    : stream_(stream),
      depths_(depths),
      also_(also),
      memory_(std::move(memory)),
      origin_mark_(stream.device(), true) {
  restart();
}

std::size_t StageTimer::mark() {
  if (used_ == marks_.size()) marks_.emplace_back(stream_.device(), true);
  marks_[used_].record(stream_);
  return used_++;
}

void StageTimer::begin(std::string_view name) {
  if (also_ != nullptr) also_->begin(name);
  const auto depth = static_cast<int>(open_.size());
  if (depth >= depths_) return open_.push_back(-1);
  const std::ptrdiff_t outer = open_.empty() ? -1 : open_.back();
  open_.push_back(static_cast<std::ptrdiff_t>(ranges_.size()));
  const Clock::time_point now = Clock::now();
  ranges_.push_back({.time = {.name = name, .depth = depth, .outer = outer, .memory_begin = bytes_in_use()},
                     .begin = mark(),
                     .end = 0,
                     .host_begin = now,
                     .host_end = now});
}

void StageTimer::end() {
  require(!open_.empty(), "a range of the trace ended that never began");
  const std::ptrdiff_t index = open_.back();
  open_.pop_back();
  if (index >= 0) {
    Range& range = ranges_[static_cast<std::size_t>(index)];
    range.end = mark();
    range.time.memory_end = bytes_in_use();
    range.host_end = Clock::now();
  }
  if (also_ != nullptr) also_->end();
}

void StageTimer::touches_bytes(std::int64_t bytes) {
  for (const std::ptrdiff_t index : open_) {
    if (index >= 0) ranges_[static_cast<std::size_t>(index)].time.bytes += bytes;
  }
  if (also_ != nullptr) also_->touches_bytes(bytes);
}

void StageTimer::works_on(std::initializer_list<std::int64_t> sizes, std::int64_t flops) {
  if (!open_.empty() && open_.back() >= 0) ranges_[static_cast<std::size_t>(open_.back())].time.sizes = sizes;
  for (const std::ptrdiff_t index : open_) {
    if (index >= 0) ranges_[static_cast<std::size_t>(index)].time.flops += flops;
  }
  if (also_ != nullptr) also_->works_on(sizes, flops);
}

void StageTimer::restart() {
  require(open_.empty(), "a trace restarted inside a range");
  ranges_.clear();
  used_ = 0;
  origin_mark_.record(stream_);
  origin_ = Clock::now();
}

std::vector<StageTime> StageTimer::take() {
  require(open_.empty(), "times were taken inside a range");
  std::vector<StageTime> times;
  times.reserve(ranges_.size());
  if (used_ > 0) marks_[used_ - 1].synchronize();  // the stream has reached all
  const auto since_origin = [&](Clock::time_point time) { return 1000 * seconds_between(origin_, time); };
  for (const Range& range : ranges_) {
    times.push_back(range.time);
    times.back().begin_ms = marks_[range.begin].milliseconds_since(origin_mark_);
    times.back().end_ms = marks_[range.end].milliseconds_since(origin_mark_);
    times.back().host_begin_ms = since_origin(range.host_begin);
    times.back().host_end_ms = since_origin(range.host_end);
  }
  ranges_.clear();
  used_ = 0;
  return times;
}

}  // namespace hstu
