// Where checkpoints stand: RUN/checkpoints/step_00000042/, and `current`, a link to the newest. Names beside
// the pattern step_<digits> (".partial" above all: a save that did not end) are not checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

std::string checkpoint_name(std::int64_t step);  // 42 -> "step_00000042"

struct CheckpointEntry {
  std::int64_t step;
  Path path;
};
// Every checkpoint in `folder` by ascending step; none when the folder does not exist.
std::vector<CheckpointEntry> list_checkpoints(const Path& folder);

// The one of the highest step, if any. It is whole, but its bytes are checked only when it is opened.
std::optional<CheckpointEntry> latest_checkpoint(const Path& folder);

// Makes folder/current a link to `checkpoint`, a checkpoint of this folder, by one rename: at every moment it
// leads to a whole checkpoint. Error where the file system has no links.
void set_current(const Path& folder, const Path& checkpoint);

// Removes what interrupted saves left behind.
void clear_leftovers(const Path& folder);

// Removes all but the `keep` newest checkpoints with steps up to `newest_step`. Later steps belong to another
// line of training and are not touched. keep <= 0 keeps all checkpoints. Call it after the checkpoint of
// `newest_step` is in place.
void prune_checkpoints(const Path& folder, std::int64_t newest_step, std::int64_t keep);

// Puts the whole folder `replacement` in the place of the folder `path`, whose old content is then removed.
// In one step where the file system can exchange names; else for an instant neither stands under the name.
void replace_folder(const Path& replacement, const Path& path);

}  // namespace hstu
