#include "hstu/base/progress_watch.h"

#include <chrono>
#include <utility>

#include "hstu/base/terminal.h"
#include "hstu/base/thread_stacks.h"

namespace hstu {

ProgressWatch::ProgressWatch(std::string who, double seconds) : who_(std::move(who)), seconds_(seconds) {
  if (seconds > 0) thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

void ProgressWatch::beat(std::int64_t step, std::string_view stage) {
  const std::scoped_lock lock(mutex_);
  end_silence();
  step_ = step;
  stage_ = stage;
  resting_ = false;
}

void ProgressWatch::beat() {
  const std::scoped_lock lock(mutex_);
  if (!resting_) end_silence();
}

void ProgressWatch::rest() {
  const std::scoped_lock lock(mutex_);
  end_silence();
  resting_ = true;
}

void ProgressWatch::end_silence() {
  const Clock::time_point now = Clock::now();
  if (std::exchange(reported_, false))
    report("{}step {} goes on after {:.0f} s in the stage \"{}\"\n", who_, step_ + 1,
           seconds_between(last_beat_, now), stage_);
  last_beat_ = now;
}

void ProgressWatch::watch(const std::stop_token& stop) {
  name_this_thread("progress watch");
  const std::chrono::duration<double> period(seconds_ / 4);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait_for(lock, stop, period, [] { return false; });
    if (stop.stop_requested()) return;
    if (resting_ || reported_ || seconds_since(last_beat_) < seconds_) continue;
    reported_ = true;
    const std::string words = fmt::format("{}step {} has made no progress for {} s in the stage \"{}\"", who_,
                                          step_ + 1, seconds_, stage_);
    lock.unlock();  // a thread whose stack is read may wait for it, or hold it
    report("{}. It may still go on; its threads are in:\n{}", words, thread_stacks());
    lock.lock();
  }
}

}  // namespace hstu
