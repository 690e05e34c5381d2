// How a run goes on: from which checkpoint, under which configuration, and with nothing later left behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/checkpoint/checkpoint.h"
#include "hstu/config/config_difference.h"
#include "hstu/run/folder.h"

namespace hstu {

// The checkpoint of `step`, or the newest (-1), with every byte checked. Empty for -1 when the run was
// interrupted before its first save: it then begins anew. UsageError when there is none of `step`, or none at
// all though the log tells of one; Error, naming another one, when it is torn.
std::optional<Checkpoint> checkpoint_to_resume(const RunFolder& folder, std::int64_t step);

// The keys in which `options` differ from the configuration the checkpoint was made under; without a
// checkpoint, from the run's config.toml. UsageError naming every one that is not in `allowed`.
std::vector<ConfigDifference> changed_keys(const RunFolder& folder,
                                           const std::optional<Checkpoint>& checkpoint,
                                           const RunOptions& options,
                                           const std::vector<std::string>& allowed);

// Moves every checkpoint later than `step` to RUN/abandoned/<n>/, beside a copy of metrics.jsonl, and says
// so. Does nothing when there is none. Cut short at any point, the run still goes on from its newest
// checkpoint.
void abandon_later(const RunFolder& folder, std::int64_t step);

// What the log says of a run up to the line of a checkpoint's own save, and behind it.
struct LogRecord {
  bool begun = false;           // there is a log
  bool ended = false;           // its last line is the end of a run that was not interrupted
  double training_seconds = 0;  // of all steps up to the checkpoint
};

// Error when the log has no line of that save, for then it is not the log of this run. A log that is not
// there is not an error: it is begun anew.
LogRecord read_log(const Path& metrics, const Checkpoint& checkpoint);

// Removes what stands behind that line.
void rewind_log(const Path& metrics, const Checkpoint& checkpoint);

}  // namespace hstu
