#include "hstu/cli/run_series.h"

#include <algorithm>

#include "hstu/base/child_processes.h"
#include "hstu/base/error.h"
#include "hstu/base/file_lock.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/cli/commands.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

std::string last_line(const Path& file) {
  std::string last;
  for (const std::string& line : split(read_file(file), '\n'))
    if (!line.empty()) last = line;
  return last;
}

RunSeries::RunSeries(SeriesWords words, std::vector<PlannedRun> runs)
    : words_(std::move(words)), runs_(std::move(runs)) {
  if (std::filesystem::exists(RunFolder{words_.output}.config())) {
    fail_usage("--output {} is a run: name another folder, in which the {} makes one for each of its runs",
               words_.output.string(), words_.what);
  }
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    read_manifest(runs_[i].options.data.path);
    states_.push_back(state_of(runs_[i], folder(i)));
  }
}

bool RunSeries::failed(std::size_t i) const {
  const auto status = statuses_.find(i);
  return status != statuses_.end() && status->second != 0 && status->second != kInterrupted;
}

int RunSeries::train() {
  std::filesystem::create_directories(words_.output / "logs");
  const FileLock lock(words_.output / "lock");
  if (!lock.held()) fail_usage("{}: another {} is at work there", words_.output.string(), words_.what);
  std::vector<ChildCommand> commands;
  std::vector<std::size_t> of_command;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (states_[i] == RunProgress::ended) continue;
    commands.push_back({command(i), log(i)});
    of_command.push_back(i);
  }
  to_train_ = commands.size();
  print_note("{} runs: {} have ended, {} to go; {} at a time{}\n", runs_.size(), runs_.size() - to_train_,
             to_train_, words_.jobs,
             words_.threads > 0 ? fmt::format(", {} threads each", words_.threads) : "");
  std::map<std::size_t, Clock::time_point> began;
  const bool all_started = run_children(
      commands, words_.jobs, [&](std::size_t c) { began[c] = Clock::now(); },
      [&](std::size_t c, int status) {
        statuses_[of_command[c]] = status;
        report(of_command[c], status, seconds_since(began[c]));
      });
  const bool interrupted = std::any_of(statuses_.begin(), statuses_.end(),
                                       [](const auto& entry) { return entry.second == kInterrupted; });
  if (!all_started || interrupted) print_note("interrupted: the same command continues\n");
  const auto failures = std::count_if(statuses_.begin(), statuses_.end(),
                                      [&](const auto& entry) { return failed(entry.first); });
  if (failures > 0) {
    print_note("{} of {} runs failed; their messages are in {}. The same command tries them again\n",
               failures, runs_.size(), (words_.output / "logs").string());
    return 1;
  }
  return !all_started || interrupted ? kInterrupted : 0;
}

std::vector<std::string> train_words(const PlannedRun& run, const Path& folder, const std::string& profile,
                                     bool resume) {
  if (resume) return {"train", "--resume", folder.string()};
  std::vector<std::string> words{"train", run.config.string(), "--output", folder.string()};
  for (const std::string& set : run.set) words.insert(words.end(), {"--set", set});
  if (!profile.empty()) words.insert(words.end(), {"--profile", profile});
  return words;
}

std::vector<std::string> RunSeries::command(std::size_t i) const {
  std::vector<std::string> words =
      train_words(runs_[i], folder(i), words_.profile, states_[i] == RunProgress::begun);
  if (words_.threads > 0) words.insert(words.end(), {"--threads", std::to_string(words_.threads)});
  if (runs_[i].ranks > 1) words.insert(words.end(), {"--ranks", std::to_string(runs_[i].ranks)});
  return words;
}

void RunSeries::report(std::size_t i, int status, double seconds) const {
  const std::string place = fmt::format("[{}/{}] {}", statuses_.size(), to_train_, runs_[i].name);
  if (status == 0) {
    const ComparedRun run = read_run(folder(i), runs_[i].name);
    const MetricSpec& headline = run.run.specs.front();
    const std::string metric = metric_cell(run.outcome.metrics.find(headline.name));
    print_note("{}: {}, {} {}, {}\n", place, run.outcome.state, headline.title, metric,
               human_duration(seconds));
  } else if (status == kInterrupted) {
    print_note("{}: interrupted and saved\n", place);
  } else {
    print_note("{}: FAILED with status {}: {}\n", place, status, last_line(log(i)));
  }
}

std::vector<SeriesResult> RunSeries::results() const {
  std::vector<SeriesResult> results(runs_.size());
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (std::filesystem::exists(RunFolder{folder(i)}.metrics())) {
      results[i].run = read_run(folder(i), runs_[i].name);
      results[i].state = results[i].run->outcome.state;
    }
    if (failed(i)) results[i].state = "failed";
  }
  return results;
}

}  // namespace hstu
