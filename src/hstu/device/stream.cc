#include "hstu/device/stream.h"

#include <cstring>

#include "hstu/base/error.h"
#include "hstu/device/cuda_calls.h"

namespace hstu {

Stream::Stream(Device device)
    : device_(device),
      handle_(device.is_host() ? nullptr : cuda::new_stream(device.index)),
      groups_(device.is_host() ? nullptr : std::make_shared<LaunchGroups>(handle_.get(), device.index)) {}

void Stream::synchronize() const {
  hand_over();
  if (handle_) cuda::synchronize(handle_.get());
}

void Stream::wait(const Event& event) const {
  if (handle_ == nullptr || event.of_gpu_ == nullptr)
    event.synchronize();
  else if (event.is_recorded())
    cuda::wait(cuda(), event.of_gpu_->handle.get());
}

void Stream::wait(const Stream& other) const {
  if (handle_ == other.handle_) return;
  Event now(other.device());
  now.record(other);
  wait(now);
}

Event::Event(Device device, bool timed) : device_(device), timed_(timed) {
  if (device.is_host()) {
    time_ = std::make_shared<Clock::time_point>();
  } else {
    of_gpu_ = std::make_shared<GpuEvent>();
    of_gpu_->handle = cuda::new_event(device.index, timed);
  }
}

void Event::record(const Stream& stream) {
  require(stream.device() == device_, "an event of {} cannot be recorded on a stream of {}", device_,
          stream.device());
  if (of_gpu_ == nullptr) {
    *time_ = Clock::now();
    return;
  }
  cuda::record(of_gpu_->handle.get(), stream.cuda());
  of_gpu_->is_recorded = true;
}

void Event::record_later(const Stream& stream) {
  require(!timed_, "the record of a timed event cannot be kept");
  LaunchGroups* const groups = of_gpu_ != nullptr && stream.device() == device_
                                   ? LaunchGroups::that_keep(stream.cuda_for_launches())
                                   : nullptr;
  if (groups != nullptr)
    groups->keep(of_gpu_);
  else
    record(stream);
}

bool Event::is_recorded() const {
  if (LaunchGroups* const groups = of_gpu_->kept_by) groups->hand_over();
  return of_gpu_->is_recorded;
}

bool Event::reached() const {
  return of_gpu_ == nullptr || !is_recorded() || cuda::reached(of_gpu_->handle.get());
}

void Event::synchronize() const {
  if (of_gpu_ != nullptr && is_recorded()) cuda::synchronize(of_gpu_->handle.get());
}

double Event::milliseconds_since(const Event& earlier) const {
  require(timed_ && earlier.timed_ && device_ == earlier.device_,
          "expected two timed events of one device, found one of {} and one of {}", device_, earlier.device_);
  if (of_gpu_ == nullptr) return 1000 * seconds_between(*earlier.time_, *time_);
  require(is_recorded() && earlier.is_recorded(), "the time between events that were not recorded");
  return cuda::milliseconds(earlier.of_gpu_->handle.get(), of_gpu_->handle.get());
}

void copy_bytes(void* to, const void* from, std::size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  if (stream.device().is_host())
    std::memcpy(to, from, bytes);
  else
    cuda::copy(to, from, bytes, stream.cuda());
}

void set_zero(void* to, std::size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  if (stream.device().is_host())
    std::memset(to, 0, bytes);
  else
    cuda::set_zero(to, bytes, stream.cuda());
}

}  // namespace hstu
