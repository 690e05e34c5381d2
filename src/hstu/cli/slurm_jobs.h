// The experiments of a suite as SLURM jobs: a script for each, what it runs in a folder of its own, and their
// submission.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/comparison/planned_run.h"

namespace hstu {

struct SlurmWords {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;  // and ranks: a rank has a GPU
  std::string partition, account;  // "": the cluster's
  std::string time = "04:00:00";
  bool one_by_one = false;  // each job waits for the end of the one before, however it ended
  bool wait = false;        // until all jobs have left the queue
  int poll_seconds = 30;
  std::string host;  // submits there by ssh, where the folder has the same path; "": here
};

// UsageError for words that scripts and ssh would take as something else.
void check_words(const SlurmWords& words, const Path& output);

// The copy of the program, the configuration and the suite that jobs run, and the state of the tree that the
// suite is from (commit.txt, difference.patch). Later edits of the originals change nothing. Keeps a copy
// that is there. Returns the copied configuration.
Path copy_for_jobs(const Path& folder, const Path& suite, const Path& config);

struct SlurmJob {
  std::string name;                                     // of the job and its script
  std::vector<std::vector<std::string>> commands = {};  // of this program, behind its name; one process each
  std::vector<std::string> begin = {},
                           resume = {};  // or one command of all ranks: a new run, or one that began
  Path run = {};                         // its folder; of commands the dataset, in a folder of their own
};

// The text of FOLDER/jobs/NAME.sh.
std::string slurm_script(const SlurmJob& job, const SlurmWords& words, const Path& folder);

// Writes and submits the scripts, those apart whose job of an earlier call (FOLDER/jobs/NAME.id) waits or
// runs. Jobs of ranks begin when those of `commands` have succeeded. Waits if the words say so. UsageError or
// Error with what sbatch, ssh or squeue wrote.
void submit_jobs(const std::vector<SlurmJob>& jobs, const SlurmWords& words, const Path& folder);

}  // namespace hstu
