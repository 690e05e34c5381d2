// LaunchQueue: a thread that hands lists of launches to the driver, in their order, while the thread that
// makes them goes on: for a small model the driver takes about as long as all else that the host does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "hstu/device/launch_list.h"

namespace hstu {

class LaunchQueue {
 public:
  // The thread calls put(list), one list after another; put() may change the list.
  explicit LaunchQueue(std::function<void(LaunchList&)> put);
  ~LaunchQueue();
  LaunchQueue(const LaunchQueue&) = delete;
  LaunchQueue& operator=(const LaunchQueue&) = delete;

  // Takes the launches of `list` and leaves it empty. After an error of put(), until finish(), they are lost.
  void add(LaunchList& list);
  // Returns when put() has returned for every list. Throws what put() has thrown since the last call.
  void finish();

 private:
  void run();
  template <typename Condition>
  void wait(std::unique_lock<std::mutex>& lock, const Condition& condition);

  std::function<void(LaunchList&)> put_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<LaunchList> waiting_;
  std::vector<LaunchList> spare_;  // empty, with their memory
  // Lists so far, and whether the thread has to end: written with the mutex.
  std::atomic<std::uint64_t> added_ = 0, done_ = 0;
  std::atomic<bool> ends_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace hstu
