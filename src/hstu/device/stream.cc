#include "hstu/device/stream.h"

#include <cstring>

#include "hstu/base/error.h"
#include "hstu/device/cuda_calls.h"

namespace hstu {

Stream::Stream(Device device)
    : device_(device),
      handle_(device.is_host() ? nullptr : cuda::new_stream(device.index)),
      groups_(device.is_host() ? nullptr : std::make_shared<LaunchGroups>(handle_.get())) {}

void Stream::synchronize() const {
  hand_over();
  if (handle_) cuda::synchronize(handle_.get());
}

void Stream::wait(const Event& event) const {
  hand_over();
  if (handle_ && event.handle_)
    cuda::wait(handle_.get(), event.handle_.get());
  else
    event.synchronize();
}

void Stream::wait(const Stream& other) const {
  if (handle_ == other.handle_) return;
  Event now(other.device());
  now.record(other);
  wait(now);
}

Event::Event(Device device, bool timed)
    : device_(device),
      timed_(timed),
      handle_(device.is_host() ? nullptr : cuda::new_event(device.index, timed)),
      time_(device.is_host() ? std::make_shared<Clock::time_point>() : nullptr) {}

void Event::record(const Stream& stream) {
  require(stream.device() == device_, "an event of {} cannot be recorded on a stream of {}", device_,
          stream.device());
  stream.hand_over();
  if (handle_)
    cuda::record(handle_.get(), stream.cuda());
  else
    *time_ = Clock::now();
}

bool Event::reached() const {
  return !handle_ || cuda::reached(handle_.get());
}

void Event::synchronize() const {
  if (handle_) cuda::synchronize(handle_.get());
}

double Event::milliseconds_since(const Event& earlier) const {
  require(timed_ && earlier.timed_ && device_ == earlier.device_,
          "expected two timed events of one device, found one of {} and one of {}", device_, earlier.device_);
  if (!handle_) return 1000 * seconds_between(*earlier.time_, *time_);
  synchronize();
  return cuda::milliseconds(earlier.handle_.get(), handle_.get());
}

void copy_bytes(void* to, const void* from, std::size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  stream.hand_over();
  if (stream.device().is_host())
    std::memcpy(to, from, bytes);
  else
    cuda::copy(to, from, bytes, stream.cuda());
}

void set_zero(void* to, std::size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  stream.hand_over();
  if (stream.device().is_host())
    std::memset(to, 0, bytes);
  else
    cuda::set_zero(to, bytes, stream.cuda());
}

}  // namespace hstu
