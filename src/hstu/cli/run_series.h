// Trains several runs, each in processes of its own: what hstu sweep and hstu suite have in common.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/comparison/planned_run.h"
#include "hstu/comparison/run_outcome.h"

namespace hstu {

struct SeriesWords {
  std::string what;          // "sweep" or "suite", for messages
  Path output;               // the folder of the runs; what each printed is in its logs/
  int jobs = 1;              // runs at a time
  int threads = 1;           // of each run; 0: as hstu train takes them
  std::string profile = {};  // --profile of each run that begins; "": none
};

struct SeriesResult {
  std::string state = "not started";  // "failed", or the outcome's
  std::optional<ComparedRun> run;     // none: it has not begun
};

class RunSeries {
 public:
  // UsageError if the output is a run itself, a run has no dataset, or a folder has a run of another
  // configuration.
  RunSeries(SeriesWords words, std::vector<PlannedRun> runs);

  // Trains the runs that have not ended and returns the exit status: 0, 1 if a run failed (the others are
  // trained), or kInterrupted.
  int train();
  // In the order of the runs. Reads their folders.
  std::vector<SeriesResult> results() const;

 private:
  Path folder(std::size_t i) const { return words_.output / runs_[i].name; }
  Path log(std::size_t i) const { return words_.output / "logs" / (runs_[i].name + ".txt"); }
  std::vector<std::string> command(std::size_t i) const;
  void report(std::size_t i, int status, double seconds) const;
  bool failed(std::size_t i) const;

  SeriesWords words_;
  std::vector<PlannedRun> runs_;
  std::vector<RunProgress> states_;      // before train()
  std::map<std::size_t, int> statuses_;  // by run
  std::size_t to_train_ = 0;
};

// The words of hstu train, without --ranks, that begin a run in the folder or continue it. `profile`: of a
// run that begins.
std::vector<std::string> train_words(const PlannedRun& run, const Path& folder, const std::string& profile,
                                     bool resume);

// The last line that a process wrote, which is its error.
std::string last_line(const Path& file);

}  // namespace hstu
