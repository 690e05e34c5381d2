// Named points of a run at which a test can inspect the program or end it as a crash would (hstu train
// --fault). Without a watcher, a point costs one comparison.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace hstu {

// Every point and the state of the run there; docs/runs.md has the same list.
struct FaultPoint {
  std::string_view name, meaning;
};
inline constexpr FaultPoint kFaultPoints[] = {
    {"open", "everything is open, nothing is trained yet"},
    {"step.begin", "a batch is there"},
    {"step.middle", "the dense parameters have moved, the table rows have not"},
    {"step.end", "all has moved, nothing is counted yet"},
    {"log.line", "half a line of metrics.jsonl is written"},
    {"evaluation.begin", "an evaluation is due"},
    {"evaluation.batch", "a batch of it is scored"},
    {"evaluation.end", "all of it is scored, its line is not written"},
    {"save.begin", "a save is due"},
    {"save.file", "one more file of the checkpoint is written"},
    {"save.staged", "all files are written, the log is not"},
    {"save.rename", "all but the name is there"},
    {"save.renamed", "the checkpoint bears its name, `current` does not lead to it yet"},
    {"save.prune", "`current` leads to it, older checkpoints still stand"},
    {"save.removal", "an old checkpoint is out of sight, but not yet removed"},
    {"save.end", "a save is done"},
    {"end", "the last save is done; the log's last line and summary.json are missing"},
};

using FaultWatcher = std::function<void(std::string_view point)>;

// Calls `watcher` at every point from now on, in the thread that trains; an empty function removes it.
void watch_fault_points(FaultWatcher watcher);
bool fault_points_are_watched();

// Calls the watcher, if any. `point` is a name of kFaultPoints.
void fault_point(std::string_view point);

// A watcher for words of the form "POINT:COUNT[:kill|term]": each sends SIGKILL (or SIGTERM) to this process
// when it reaches the point for the COUNT-th time, counted from 1. UsageError for other words.
FaultWatcher parse_faults(std::span<const std::string> words);

}  // namespace hstu
