#include "hstu/comparison/suite_figures.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "hstu/base/error.h"
#include "hstu/base/json_lines.h"
#include "hstu/base/median.h"
#include "hstu/base/text.h"
#include "hstu/comparison/run_outcome.h"

namespace hstu {
namespace {

// A train line with the steps since the one before.
struct Interval {
  const Json* line;
  double steps, samples;
  double seconds() const {
    return steps * (line->value("step_ms", 0.0) + line->value("data_wait_ms", 0.0)) / 1000;
  }
};

std::vector<Interval> intervals_of(const RunMetrics& metrics, std::int64_t warmup) {
  std::vector<Interval> intervals;
  double step = 0, samples = 0;
  for (const Json* line : metrics.all("train")) {
    const double now = line->value("step", 0.0), all = line->value("samples", 0.0);
    intervals.push_back({line, now - std::exchange(step, now), all - std::exchange(samples, all)});
  }
  const auto out = std::min<std::ptrdiff_t>(warmup, std::ssize(intervals));
  intervals.erase(intervals.begin(), intervals.begin() + out);
  return intervals;
}

// The values of a key with their times, in the intervals that have it.
struct Values {
  std::vector<double> values;
  double sum = 0, seconds = 0;

  Values(std::span<const Interval> intervals, const char* key, double factor) {
    for (const Interval& interval : intervals) {
      const auto found = interval.line->find(key);
      if (found == interval.line->end() || !found->is_number()) continue;
      values.push_back(factor * found->get<double>());
      sum += values.back() * interval.seconds();
      seconds += interval.seconds();
    }
  }
  std::optional<double> mean() const { return seconds > 0 ? std::optional(sum / seconds) : std::nullopt; }
  std::optional<double> middle() const {
    return values.empty() ? std::nullopt : std::optional(median(values));
  }
  std::optional<double> most() const {
    return values.empty() ? std::nullopt : std::optional(*std::max_element(values.begin(), values.end()));
  }
};

std::string device_of(const RunMetrics& metrics) {
  const Json& run = metrics.run();
  std::string device = run.value("device", "");
  if (!run.contains("machine")) return device;
  const Json& machine = run.at("machine");
  if (device.starts_with("cuda") && machine.contains("gpus") && !machine.at("gpus").empty())
    return machine.at("gpus").at(0).value("name", device);
  return machine.value("cpu", device);
}

using Ranges = std::vector<std::pair<double, double>>;

double length_of_union(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  double length = 0, end = -1e300;
  for (const auto& [begin, until] : ranges) {
    length += std::max(0.0, until - std::max(begin, end));
    end = std::max(end, until);
  }
  return length;
}

Json read_trace(const Path& path) {
  Json trace = Json::parse(read_file(path), nullptr, false);
  check(trace.is_object() && trace.contains("traceEvents"), "{}: this is no trace of hstu train --profile",
        path.string());
  return trace;
}

// The ranges of stages that hold operations: what is between these is no work.
bool is_section(const std::string& name) {
  static const std::set<std::string> kSections{"lookup",      "forward",   "backward",  "update", "embedding",
                                               "predictions", "optimizer", "data_wait", "loss"};
  return kSections.contains(name);
}

}  // namespace

std::optional<double> exposed_share(const Json& trace) {
  struct Process {
    Ranges messages, collectives, work, steps;
  };
  std::map<std::pair<int, int>, std::string> threads;
  std::map<int, Process> processes;
  for (const Json& event : trace.at("traceEvents"))
    if (event.value("name", "") == "thread_name")
      threads[{event.value("pid", 0), event.value("tid", 0)}] = event.at("args").value("name", "");
  for (const Json& event : trace.at("traceEvents")) {
    if (event.value("ph", "") != "X") continue;
    const std::string thread = threads[{event.value("pid", 0), event.value("tid", 0)}];
    Process& process = processes[event.value("pid", 0)];
    const std::string name = event.value("name", "");
    const double begin = event.value("ts", 0.0);
    const std::pair range{begin, begin + event.value("dur", 0.0)};
    if (thread.ends_with("messages")) process.messages.push_back(range);
    if (thread.ends_with("collectives")) process.collectives.push_back(range);
    if (thread.ends_with("stages") && !is_section(name)) process.work.push_back(range);
    if (thread.ends_with("steps") && name.starts_with("step ")) process.steps.push_back(range);
  }
  double exposed = 0, steps = 0;
  for (const auto& [pid, process] : processes) {
    // GPUs exchange by messages, and their hosts' collectives are beside the kernels.
    Ranges both = process.messages.empty() ? process.collectives : process.messages;
    if (both.empty()) continue;
    both.insert(both.end(), process.work.begin(), process.work.end());
    exposed += length_of_union(std::move(both)) - length_of_union(process.work);
    steps += length_of_union(process.steps);
  }
  return steps > 0 ? std::optional(exposed / steps) : std::nullopt;
}

SuiteFigures suite_figures(const SuiteExperiment& experiment, const SuiteBase& base,
                           const RunMetrics& metrics, const std::vector<Json>& profiles) {
  SuiteFigures f;
  f.name = experiment.name, f.ranks = experiment.ranks, f.device = device_of(metrics);
  const Json* const end = metrics.last("end");
  f.state = end == nullptr ? "not ended" : end->value("reason", "");
  if (const Json* const run = metrics.last("run"))
    if (const double mib = run->value("memory_plan_mib", 0.0); mib > 0) f.planned_gib = mib / 1024;
  const std::vector<Interval> intervals = intervals_of(metrics, base.warmup_lines);
  double seconds = 0, samples = 0;
  for (const Interval& interval : intervals) {
    f.steps += static_cast<std::int64_t>(interval.steps);
    samples += interval.samples;
    seconds += interval.seconds();
    f.memory_gib = std::max(f.memory_gib, interval.line->value("memory_peak_mib", 0.0) / 1024);
  }
  if (f.steps == 0 || seconds <= 0) return f;
  f.step_ms = 1000 * seconds / static_cast<double>(f.steps);
  f.samples_per_s = samples / seconds;
  // Rates of a line are those of all ranks; shares of the peak are of all their GPUs.
  const double each = 1 / static_cast<double>(experiment.ranks);
  const Values tflops(intervals, "tflops", each), mfu(intervals, "mfu", 1);
  f.tflops = tflops.mean(), f.median_tflops = tflops.middle(), f.best_tflops = tflops.most();
  f.mfu = mfu.mean(), f.median_mfu = mfu.middle(), f.best_mfu = mfu.most();
  f.tokens_per_s = Values(intervals, "tokens_per_s", each).mean().value_or(0);
  f.balance_before = Values(intervals, "work_max_over_mean_of_slices", 1).mean();
  f.balance_after = Values(intervals, "work_max_over_mean", 1).mean();
  for (const auto& [name, key] : {std::pair{"data wait", "data_wait_ms"},
                                  {"row lookup", "lookup_ms"},
                                  {"forward", "forward_ms"},
                                  {"backward", "backward_ms"},
                                  {"update", "update_ms"}})
    f.stages.emplace_back(name, Values(intervals, key, 1).mean().value_or(0));
  const double epoch = base.epoch_samples > 0 ? static_cast<double>(base.epoch_samples)
                                              : metrics.run().value("train_samples", 0.0);
  f.days_per_epoch = epoch / f.samples_per_s / 86400;
  for (const Json& profile : profiles)
    if (const auto share = exposed_share(profile)) f.exposed_share = share;
  return f;
}

std::vector<SuiteFigures> read_suite(const Suite& suite, const Path& folder) {
  std::vector<SuiteFigures> all;
  for (const SuiteExperiment& experiment : suite.experiments) {
    const RunFolder run{folder / experiment.name};
    if (!std::filesystem::exists(run.metrics())) {
      all.emplace_back();
      all.back().name = experiment.name, all.back().ranks = experiment.ranks;
      // A run that fails before its first step leaves what it printed, and no folder.
      if (std::filesystem::exists(folder / "logs" / (experiment.name + ".txt"))) all.back().state = "failed";
      continue;
    }
    const RunMetrics metrics(read_json_lines(run.metrics()), run.metrics().string());
    std::vector<Json> profiles;
    for (const auto& entry : std::filesystem::directory_iterator(run.path))
      if (entry.path().filename().string().starts_with("trace_"))
        profiles.push_back(read_trace(entry.path()));
    all.push_back(metrics.values([&] { return suite_figures(experiment, suite.base, metrics, profiles); }));
  }
  const double first = all.empty() ? 0 : all.front().tokens_per_s;
  for (SuiteFigures& f : all)
    if (first > 0 && f.tokens_per_s > 0) f.speedup = f.tokens_per_s / first;
  return all;
}

}  // namespace hstu
