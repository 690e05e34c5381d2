#include "hstu/device/launch_queue.h"

#include <chrono>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/thread_stacks.h"

namespace hstu {

namespace {

// For the other thread of this core, which may be the one that is waited for; then for other threads.
void give_way() {
  for (int i = 0; i < 16; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  std::this_thread::yield();
}

}  // namespace

// Lists come every few tens of microseconds, which a thread that sleeps would need to wake up: so it looks
// for a while first.
template <typename Condition>
void LaunchQueue::wait(std::unique_lock<std::mutex>& lock, const Condition& condition) {
  constexpr std::chrono::microseconds kAwake(200);
  lock.unlock();
  const Clock::time_point begin = Clock::now();
  while (!condition() && Clock::now() - begin < kAwake) give_way();
  lock.lock();
  changed_.wait(lock, condition);
}

LaunchQueue::LaunchQueue(std::function<void(LaunchList&)> put)
    : put_(std::move(put)), thread_([this] {
        name_this_thread("launches");
        run();
      }) {}

LaunchQueue::~LaunchQueue() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LaunchQueue::add(LaunchList& list) {
  {
    const std::scoped_lock lock(mutex_);
    if (spare_.empty()) spare_.emplace_back();
    waiting_.push_back(std::move(spare_.back()));
    spare_.pop_back();
    std::swap(waiting_.back(), list);
    ++added_;
  }
  changed_.notify_all();
}

void LaunchQueue::finish() {
  std::unique_lock lock(mutex_);
  wait(lock, [&] { return done_ == added_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void LaunchQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wait(lock, [&] { return ends_ || done_ != added_; });
    if (done_ == added_) return;
    LaunchList list = std::move(waiting_.front());
    waiting_.pop_front();
    if (!error_) {
      lock.unlock();
      std::exception_ptr error;
      try {
        put_(list);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      error_ = error;
    }
    list.clear();
    spare_.push_back(std::move(list));
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace hstu
