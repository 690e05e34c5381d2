// `hstu train --profile steps=50:55`: the times of a few steps as a trace that Perfetto opens.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/batching/loader.h"
#include "hstu/profile/profile_over_ranks.h"
#include "hstu/report/trace_events.h"
#include "hstu/run/step_result.h"
#include "hstu/tensor/stage_timer.h"

namespace hstu {

// Steps as the log counts them: the first of a run is 1. Both ends belong to the profile.
struct ProfileSteps {
  std::int64_t first = 1, last = 1;
  std::int64_t warmup = 1;  // steps before them that are measured too, and left out
};
// "steps=FIRST:LAST", and ",warmup=N" behind it. Throws UsageError for anything else.
ProfileSteps parse_profile(const std::string& text);

// The range in which a step waits for its batch.
inline constexpr std::string_view kDataWait = "data_wait";

// Collects the tracks of a profile: process "hstu" with the thread of the steps and the threads of the
// loader, by the clock; process "host" or "cuda:N" with the stages and operations of the device, by marks on
// its stream. Measures steps before the first as well and leaves them out: they make the marks. Several
// ranks: each has a Profiler, with one more thread for its collectives, one for those of the group that
// shares heads, and one for the messages of its GPU, and rank 0 writes the tracks of all.
class Profiler {
 public:
  // Writes FOLDER/trace_FIRST_LAST.json for each of `profiles`; without any it does nothing. Throws
  // UsageError if a step is not after `done`, the number of steps already trained, or not before the end of
  // the run, or if two profiles share a step, those that warm up included. `comm` and `gpus`, which joins the
  // GPUs of several ranks (null: none), must outlive it, like the groups of `compute`.
  Profiler(std::vector<ProfileSteps> profiles, const Context& compute, const Path& folder, std::int64_t done,
           std::int64_t run_steps, Communicator& comm, DeviceTransport* gpus);

  // Before the step waits for its batch; `step` from 1. The context of the step is `compute` with the trace
  // that measures, or as it is.
  Context begin_step(std::int64_t step, const Context& compute);
  // A part of the step's batch.
  void add(const LoadedBatch& part);
  void end_step(std::int64_t step, const StepResult& result);
  // Until the last step is written.
  bool is_active() const { return steps_.has_value(); }
  // True after the last step, until finish().
  bool is_complete() const { return steps_ && recorded_ == steps_->last; }
  // Writes what there is, if it is not written. A failure is reported, and ends no run. On rank 0 it
  // announces Command::profile first if there is anything; the other ranks call it at that command.
  void finish();

 private:
  bool measures(std::int64_t step) const;
  void add_memory(double begin_ms, std::span<const StageTime> ranges);
  void end_recording();
  void begin_next();  // of queue_, if any is left
  // The collectives of one group of ranks.
  struct OfGroup {
    explicit OfGroup(Communicator& group) : comm(group), times(group) {}
    Communicator& comm;
    CollectiveTimes times;
    TraceTrack track = {};
  };
  double since_start(Clock::time_point time) const { return 1000 * seconds_between(start_, time); }

  std::deque<ProfileSteps> queue_;     // after steps_, in their order
  std::optional<ProfileSteps> steps_;  // empty: nothing is left to do
  Path folder_, path_;
  Device device_;
  bool is_recorded_ = false;  // by a profiler of the GPU
  std::optional<StageTimer> timer_;
  Clock::time_point start_, step_begin_;
  std::int64_t recorded_ = 0;  // the last step in the tracks
  TraceTrack step_track_, device_track_, memory_track_;
  std::map<int, TraceTrack> loader_tracks_;
  Communicator& comm_;
  std::deque<OfGroup> groups_;  // all ranks; and those that share heads
  DeviceTransport* gpus_;
  ExchangeTimes exchanges_;
  TraceTrack exchange_track_;
};

}  // namespace hstu
