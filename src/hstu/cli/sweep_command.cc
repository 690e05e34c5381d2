#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hstu/base/child_processes.h"
#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/file_lock.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/cli/commands.h"
#include "hstu/comparison/sweep_summary.h"
#include "hstu/dataset/manifest.h"
#include "hstu/device/machine.h"

namespace hstu {
namespace {

// The last line that the process wrote, which is its error.
std::string last_line(const Path& file) {
  std::string last;
  for (const std::string& line : split(read_file(file), '\n'))
    if (!line.empty()) last = line;
  return last;
}

class Sweep {
 public:
  Sweep(const SweepWords& words, int jobs, int threads)
      : output_(words.output), config_(words.config), jobs_(jobs), threads_(threads) {
    if (std::filesystem::exists(RunFolder{output_}.config())) {
      fail_usage(
          "--output {} is a run: name another folder, in which the sweep makes one for each of its runs",
          output_.string());
    }
    for (SweepRun& run : plan_sweep(words)) results_.push_back({std::move(run), "not started", {}});
    for (const SweepResult& result : results_) {
      read_manifest(result.run.options.data.path);
      states_.push_back(state_of(result.run, folder(result)));
    }
  }

  // Returns the exit status.
  int run() {
    std::filesystem::create_directories(output_ / "logs");
    const FileLock lock(output_ / "lock");
    if (!lock.held()) fail_usage("{}: another sweep is at work there", output_.string());
    const std::vector<ChildCommand> commands = commands_of_runs();
    print_note("{} runs: {} have ended, {} to go; {} at a time, {} threads each\n", results_.size(),
               results_.size() - commands.size(), commands.size(), jobs_, threads_);
    const bool all_started = run_children(
        commands, jobs_, [&](std::size_t i) { began_[i] = Clock::now(); },
        [&](std::size_t i, int status) { report(i, status); });
    read_outcomes();
    write_results();
    const auto failed = std::count_if(statuses_.begin(), statuses_.end(), [](const auto& entry) {
      return entry.second != 0 && entry.second != kInterrupted;
    });
    const bool interrupted = std::any_of(statuses_.begin(), statuses_.end(),
                                         [](const auto& entry) { return entry.second == kInterrupted; });
    if (!all_started || interrupted) print_note("interrupted: the same command continues\n");
    if (failed > 0) {
      print_note("{} of {} runs failed; their messages are in {}. The same command tries them again\n",
                 failed, results_.size(), (output_ / "logs").string());
      return 1;
    }
    return !all_started || interrupted ? kInterrupted : 0;
  }

 private:
  Path folder(const SweepResult& result) const { return output_ / result.run.name; }
  Path log(const SweepResult& result) const { return output_ / "logs" / (result.run.name + ".txt"); }

  std::vector<ChildCommand> commands_of_runs() {
    std::vector<ChildCommand> commands;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (states_[i] == SweepState::ended) continue;
      const SweepResult& result = results_[i];
      std::vector<std::string> words{"train", "--threads", std::to_string(threads_)};
      if (states_[i] == SweepState::begun) {
        words.insert(words.end(), {"--resume", folder(result).string()});
      } else {
        words.insert(words.end(), {config_.string(), "--output", folder(result).string()});
        for (const std::string& set : result.run.set) words.insert(words.end(), {"--set", set});
      }
      commands.push_back({std::move(words), log(result)});
      of_command_.push_back(i);
    }
    return commands;
  }

  void report(std::size_t command, int status) {
    const std::size_t i = of_command_[command];
    statuses_[i] = status;
    const std::string name = results_[i].run.name, took = human_duration(seconds_since(began_[command]));
    const std::string place = fmt::format("[{}/{}] {}", statuses_.size(), of_command_.size(), name);
    if (status == 0) {
      const ComparedRun run = read_run(folder(results_[i]), name);
      const MetricSpec& headline = run.run.specs.front();
      print_note("{}: {}, {} {}, {}\n", place, run.outcome.state, headline.title,
                 metric_cell(run.outcome.metrics.find(headline.name)), took);
    } else if (status == kInterrupted) {
      print_note("{}: interrupted and saved\n", place);
    } else {
      print_note("{}: FAILED with status {}: {}\n", place, status, last_line(log(results_[i])));
    }
  }

  void read_outcomes() {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const bool has_log = std::filesystem::exists(RunFolder{folder(results_[i])}.metrics());
      if (has_log) {
        ComparedRun compared = read_run(folder(results_[i]), results_[i].run.name);
        results_[i].outcome = compared.outcome;
        results_[i].state = compared.outcome.state;
        runs_.push_back(std::move(compared));
      }
      const auto status = statuses_.find(i);
      const bool failed = status != statuses_.end() && status->second != 0 && status->second != kInterrupted;
      if (failed) results_[i].state = "failed";
    }
  }

  void write_results() const {
    const std::vector<Cells> rows = sweep_table(results_);
    fmt::print("{}", table(rows));
    write_file(output_ / "summary.jsonl", sweep_lines(results_));
    if (runs_.empty()) return;
    std::vector<NamedRun> named;
    named.reserve(runs_.size());
    for (const ComparedRun& run : runs_) named.push_back(run.run);
    write_page(output_ / "summary.html",
               comparison_html("sweep", comparison_table(runs_), settings_table(runs_), named));
    fmt::print("{}\n", (output_ / "summary.html").string());
  }

  Path output_, config_;
  int jobs_, threads_;
  std::vector<SweepResult> results_;
  std::vector<SweepState> states_;                  // before this sweep, of each result
  std::vector<std::size_t> of_command_;             // the result of each command
  std::map<std::size_t, Clock::time_point> began_;  // by command
  std::map<std::size_t, int> statuses_;             // by result
  std::vector<ComparedRun> runs_;
};

}  // namespace

void add_sweep_command(CLI::App& app) {
  struct Words {
    SweepWords sweep;
    std::vector<std::string> vary;
    int jobs = 1, threads = 0;
  };
  auto words = std::make_shared<Words>();
  CLI::App* const command = app.add_subcommand(
      "sweep", "Train a configuration with several values and seeds, and compare the runs");
  command->add_option("CONFIG", words->sweep.config, "a TOML file")->required();
  command
      ->add_option("--vary", words->vary,
                   "section.key=value,value,...; several keys: every combination of their values")
      ->allow_extra_args(false);
  command
      ->add_option("--seeds", words->sweep.seeds,
                   "runs of each setting, with the seeds from the configuration's on")
      ->check(CLI::Range(1, 1000));
  command->add_option("--set", words->sweep.set, "section.key=value, of every run; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--jobs", words->jobs, "runs at a time")->check(CLI::Range(1, 1024));
  command->add_option("--threads", words->threads, "of all runs together, shared alike; 0: all cores")
      ->check(CLI::Range(0, kMostThreads));
  command->add_option("--output", words->sweep.output, "folder of the runs")->required();
  command->footer(
      "DIR holds one plain run for each setting and seed, what each printed in logs/, summary.jsonl and\n"
      "summary.html. The same command again resumes runs that were interrupted or failed, and skips those "
      "that\n"
      "have ended. Exit status: 0 all ended, 1 a run failed (the others continue), 75 interrupted and "
      "saved.\n"
      "Example:\n"
      "  hstu sweep config.toml --vary dense_optimizer.learning_rate=3e-4,1e-3 --vary model.layers=2,3 "
      "--seeds 3\n"
      "    --jobs 2 --output sweep");
  command->callback([words] {
    for (const std::string& word : words->vary) words->sweep.vary.push_back(parse_variation(word));
    const int cores = words->threads > 0 ? words->threads : this_machine().usable_cores;
    const int status = Sweep(words->sweep, words->jobs, std::max(1, cores / words->jobs)).run();
    if (status != 0) throw ExitStatus{status};
  });
}

}  // namespace hstu
