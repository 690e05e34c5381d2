// Resumes a run: selects the checkpoint, checks the configuration, removes what is later than the checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/checkpoint/checkpoint.h"
#include "hstu/config/config_difference.h"
#include "hstu/run/folder.h"

namespace hstu {

// The checkpoint of `step`, or the newest (-1), with every byte checked. Empty for -1 if the run was
// interrupted before its first save; it then starts from the beginning. UsageError if `step` has no
// checkpoint, or if none exists although the log has lines of saves; Error naming another one if it is torn.
std::optional<Checkpoint> checkpoint_to_resume(const RunFolder& folder, std::int64_t step);

// The keys in which `options` differ from the checkpoint's configuration or, without a checkpoint, from the
// run's config.toml. UsageError naming every one that is not in `allowed`.
std::vector<ConfigDifference> changed_keys(const RunFolder& folder,
                                           const std::optional<Checkpoint>& checkpoint,
                                           const RunOptions& options,
                                           const std::vector<std::string>& allowed);

// Whether a changed key says which samples are evaluated, or how they count: neither of two evaluations, one
// before and one after the change, is the better one.
bool change_evaluations(const std::vector<ConfigDifference>& changed);

// Moves every checkpoint later than `step` and a copy of metrics.jsonl to RUN/abandoned/<n>/, with a note.
// Does nothing if there is none. If it is interrupted at any point, the run can still resume from its newest
// checkpoint.
void abandon_later(const RunFolder& folder, std::int64_t step);

// Facts from the log of a run, relative to the line of a checkpoint's save.
struct LogRecord {
  bool begun = false;           // the log exists
  bool ended = false;           // its last line is `end`, with a reason other than "interrupted"
  double training_seconds = 0;  // of all steps up to the checkpoint
};

// Error if the log has no line of that save, because it is then not the log of this run. A missing log is
// no error: the run starts a new one.
LogRecord read_log(const Path& metrics, const Checkpoint& checkpoint);

// Removes the lines after that line.
void rewind_log(const Path& metrics, const Checkpoint& checkpoint);

}  // namespace hstu
