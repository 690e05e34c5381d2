// ProgressWatch: reports what a process does when training makes no progress. It never ends the process.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "hstu/base/clock.h"

namespace hstu {

class ProgressWatch {
 public:
  // After `seconds` (0: never) without a beat, once: step, stage and the stacks of all threads go to stderr,
  // each message after `who` ("rank 3: "). With the next beat a line says that the step goes on.
  explicit ProgressWatch(std::string who = "", double seconds = 60);

  // The work is in this stage of the step (0 is the first) from now on. `stage` is a literal.
  void beat(std::int64_t step, std::string_view stage);
  // The work of the same stage goes on; nothing at rest.
  void beat();
  // Nothing is expected until the next beat.
  void rest();

 private:
  void watch(const std::stop_token& stop);
  void end_silence();

  const std::string who_;
  const double seconds_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::int64_t step_ = 0;
  std::string_view stage_;
  Clock::time_point last_beat_;
  bool resting_ = true, reported_ = false;
  std::jthread thread_;  // last: joined before the other members are destroyed
};

}  // namespace hstu
