#include "hstu/profile/profile.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/comm/groups.h"
#include "hstu/device/gpu_profilers.h"
#include "hstu/experiment/command.h"

namespace hstu {
namespace {

// Of both passes, as they are computed (LayerFlops::backward).
std::int64_t attention_flops(const StepResult& result) {
  const std::int64_t forward = result.flops.computed.attention;
  return forward + forward / 2 * 5;
}

// What is known of a range; null: nothing.
Json arguments_of(const StageTime& range) {
  Json arguments;
  if (range.bytes > 0) arguments["operand_bytes"] = range.bytes;
  if (!range.sizes.empty()) arguments["sizes"] = range.sizes;
  if (range.flops > 0) arguments["flops"] = range.flops;
  return arguments;
}

}  // namespace

ProfileSteps parse_profile(const std::string& text) {
  constexpr std::string_view kSteps = "steps=", kWarmup = "warmup=";
  std::optional<std::int64_t> first, last, warmup = 1;
  for (const std::string& word : split(text, ',')) {
    const std::string_view view = word;
    if (view.starts_with(kSteps) && !first) {
      const std::vector<std::string> ends = split(view.substr(kSteps.size()), ':');
      if (ends.size() != 2) break;
      first = parse_number<std::int64_t>(ends[0]), last = parse_number<std::int64_t>(ends[1]);
    } else if (view.starts_with(kWarmup) && first) {
      warmup = parse_number<std::int64_t>(view.substr(kWarmup.size()));
    } else {
      first.reset();
      break;
    }
  }
  if (first && last && warmup && 1 <= *first && *first <= *last && 0 <= *warmup)
    return {*first, *last, *warmup};
  fail_usage(
      "--profile: expected steps=FIRST:LAST with 1 <= FIRST <= LAST and, if wanted, warmup=N behind it, for "
      "example steps=50:55,warmup=2, found \"{}\"",
      text);
}

Profiler::Profiler(std::vector<ProfileSteps> profiles, const Context& compute, const Path& folder,
                   std::int64_t done, std::int64_t run_steps, Communicator& comm, DeviceTransport* gpus)
    : folder_(folder), device_(compute.device()), comm_(comm), gpus_(gpus), exchanges_(comm) {
  groups_.emplace_back(comm);
  if (compute.groups != nullptr && compute.groups->tensor.size() > 1)
    groups_.emplace_back(compute.groups->tensor.host);
  std::sort(profiles.begin(), profiles.end(),
            [](const ProfileSteps& a, const ProfileSteps& b) { return a.first < b.first; });
  std::int64_t last = 0;
  for (const ProfileSteps& steps : profiles) {
    if (steps.first <= done || steps.last > run_steps)
      fail_usage("--profile steps={}:{}: this process trains the steps {} to {}: name steps among them",
                 steps.first, steps.last, done + 1, run_steps);
    if (last > 0 && steps.first - steps.warmup <= last)
      fail_usage("--profile steps={}:{},warmup={}: the steps up to {} are those of another profile",
                 steps.first, steps.last, steps.warmup, last);
    last = steps.last;
  }
  queue_.assign(profiles.begin(), profiles.end());
  begin_next();
}

void Profiler::begin_next() {
  steps_.reset();
  timer_.reset();
  if (queue_.empty()) return;
  steps_ = queue_.front();
  queue_.pop_front();
  path_ = folder_ / fmt::format("trace_{}_{}.json", steps_->first, steps_->last);
  start_ = {};
  recorded_ = 0;
  loader_tracks_.clear();
  step_track_ = {.process = "hstu", .thread = "steps", .events = {}};
  device_track_ = {.process = to_string(device_), .thread = "stages", .events = {}};
  memory_track_ = {.process = to_string(device_), .thread = "memory of the passes, bytes", .events = {}};
  for (OfGroup& group : groups_)
    group.track = {.process = "hstu", .thread = "collectives" + group.comm.group_text(), .events = {}};
  exchange_track_ = {.process = to_string(device_), .thread = "messages", .events = {}};
}

bool Profiler::measures(std::int64_t step) const {
  return steps_ && steps_->first - steps_->warmup <= step && step <= steps_->last;
}

Context Profiler::begin_step(std::int64_t step, const Context& compute) {
  Context context = compute;
  if (!measures(step)) return context;
  if (!timer_) timer_.emplace(compute.stream, std::numeric_limits<int>::max(), compute.trace, compute.memory);
  if (step == steps_->first) {
    start_gpu_profilers(device_);
    is_recorded_ = true;
  }
  timer_->restart();
  step_begin_ = timer_->origin();
  if (step == steps_->first) start_ = step_begin_;
  if (comm_.size() > 1 && step >= steps_->first) {
    for (OfGroup& group : groups_) group.comm.set_trace(&group.times);
    exchanges_.restart(compute.stream);
    if (gpus_ != nullptr) gpus_->set_trace(&exchanges_);
  }
  context.trace = &*timer_;
  return context;
}

void Profiler::add(const LoadedBatch& part) {
  // The first parts of a profile may have been built before it began.
  if (!timer_ || start_ == Clock::time_point() || part.build_end <= start_) return;
  TraceTrack& track = loader_tracks_[part.worker];
  track.process = "hstu";
  track.thread = fmt::format("loader {}", part.worker);
  track.events.push_back({.name = "build batch",
                          .begin_ms = std::max(0.0, since_start(part.build_begin)),
                          .end_ms = since_start(part.build_end),
                          .arguments = {{"samples", part.batch.samples}, {"tokens", part.batch.tokens}}});
}

void Profiler::end_step(std::int64_t step, const StepResult& result) {
  if (!measures(step)) return;
  const double begin_ms = since_start(step_begin_), end_ms = since_start(Clock::now());
  const std::vector<StageTime> ranges = timer_->take();
  if (step < steps_->first) return;
  if (step == steps_->last) end_recording();
  recorded_ = step;
  add_memory(begin_ms, ranges);
  for (OfGroup& group : groups_) {
    group.comm.set_trace(nullptr);
    for (TraceEvent& collective : group.times.take(start_))
      group.track.events.push_back(std::move(collective));
  }
  if (gpus_ != nullptr) gpus_->set_trace(nullptr);
  for (TraceEvent& exchange : exchanges_.take(begin_ms))
    exchange_track_.events.push_back(std::move(exchange));
  step_track_.events.push_back({.name = fmt::format("step {}", step),
                                .begin_ms = begin_ms,
                                .end_ms = end_ms,
                                .arguments = {{"samples", result.samples},
                                              {"tokens", result.tokens},
                                              {"model_flops", result.flops.model.step()},
                                              {"attention_flops", attention_flops(result)}}});
  for (const StageTime& range : ranges) {
    const std::string name(range.name);
    // On the host the work is done where it is put on the stream: operations would be shown twice.
    if (!device_.is_host() || range.depth == 0)
      step_track_.events.push_back({name, begin_ms + range.host_begin_ms, begin_ms + range.host_end_ms});
    if (range.name != kDataWait)
      device_track_.events.push_back(
          {name, begin_ms + range.begin_ms, begin_ms + range.end_ms, arguments_of(range)});
  }
}

// A number that did not change says nothing new.
void Profiler::add_memory(double begin_ms, std::span<const StageTime> ranges) {
  std::vector<TraceCounter> found;
  for (const StageTime& range : ranges) {
    found.push_back({begin_ms + range.begin_ms, range.memory_begin});
    found.push_back({begin_ms + range.end_ms, range.memory_end});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const TraceCounter& a, const TraceCounter& b) { return a.at_ms < b.at_ms; });
  std::vector<TraceCounter>& counters = memory_track_.counters;
  for (const TraceCounter& counter : found)
    if (counters.empty() || counters.back().value != counter.value) counters.push_back(counter);
}

void Profiler::end_recording() {
  if (std::exchange(is_recorded_, false)) stop_gpu_profilers(device_);
}

void Profiler::finish() {
  end_recording();
  if (!steps_ || recorded_ == 0) return;
  std::vector<TraceTrack> tracks{std::move(step_track_)};
  for (auto& [worker, track] : loader_tracks_) tracks.push_back(std::move(track));
  tracks.push_back(std::move(device_track_));
  tracks.push_back(std::move(memory_track_));
  if (comm_.size() > 1) {
    for (OfGroup& group : groups_) tracks.push_back(std::move(group.track));
    if (gpus_ != nullptr) tracks.push_back(std::move(exchange_track_));
    if (comm_.rank() == 0) announce(Command::profile, comm_);
    tracks = gather_tracks(tracks, start_, comm_);
  }
  const std::int64_t first = steps_->first, last = recorded_;
  const Path path = path_;
  begin_next();
  if (comm_.rank() > 0) return;
  try {
    write_file(path, trace_events_json(tracks));
    print_note("\nprofile: steps {} to {} are in {}: open it at ui.perfetto.dev\n", first, last,
               path.string());
  } catch (const Error& error) {
    print_note("\nWARNING: the profile is lost: {}\n", error.what());
  }
}

}  // namespace hstu
