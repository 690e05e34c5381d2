// Named points of a run at which a test can inspect the program or kill it as in a crash (hstu train
// --fault). Without a watcher, a point costs one comparison.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace hstu {

// Every point and the state of the run at it; docs/runs.md has the same list.
struct FaultPoint {
  std::string_view name, meaning;
};
inline constexpr FaultPoint kFaultPoints[] = {
    {"open", "everything is open, nothing is trained yet"},
    {"step.begin", "a step is due"},
    {"step.middle", "the dense parameters are updated, the table rows are not"},
    {"step.end", "the update is complete, the step is not counted yet"},
    {"log.line", "half a line of metrics.jsonl is written"},
    {"evaluation.begin", "an evaluation is due"},
    {"evaluation.batch", "a batch of the evaluation is scored"},
    {"evaluation.end", "all batches are scored, the log's line is not written"},
    {"save.begin", "a save is due"},
    {"save.file", "one more file of the checkpoint is written"},
    {"save.staged", "all files are written, the log's line is not"},
    {"save.rename", "the log's line is written, the checkpoint is not renamed yet"},
    {"save.renamed", "the checkpoint has its name, `current` does not point to it yet"},
    {"save.prune", "`current` points to the checkpoint, older checkpoints are not removed yet"},
    {"save.removal", "an old checkpoint is renamed, but not removed yet"},
    {"save.end", "the save is complete"},
    {"end", "the last save is complete, the log's last line and summary.json are missing"},
};

using FaultWatcher = std::function<void(std::string_view point)>;

// Calls `watcher` at every point from now on, in the training thread; an empty function removes it.
void watch_fault_points(FaultWatcher watcher);
bool fault_points_are_watched();

// Calls the watcher, if any. `point` is a name of kFaultPoints.
void fault_point(std::string_view point);

// A watcher for words of the form "POINT:COUNT[:kill|term|hup|usr1]": each sends SIGKILL (or that signal) to
// this process when it reaches the point for the COUNT-th time, counted from 1. UsageError for other words.
FaultWatcher parse_faults(std::span<const std::string> words);

}  // namespace hstu
