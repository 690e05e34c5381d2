// The folder of checkpoints: RUN/checkpoints/step_00000042/, and the links `current`, to the newest, and
// `best`, if one is kept. Names that do not match step_<digits>, such as ".partial" (an interrupted save),
// are not checkpoints.
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
// Every checkpoint in `folder` by ascending step; none if the folder does not exist.
std::vector<CheckpointEntry> list_checkpoints(const Path& folder);

// The checkpoint of the highest step, if any. It is complete; its bytes are checked only when it is opened.
std::optional<CheckpointEntry> latest_checkpoint(const Path& folder);

inline constexpr const char* kCurrentLink = "current";
inline constexpr const char* kBestLink = "best";

// Makes folder/name a link to `checkpoint`, a checkpoint of this folder, by one rename: the link always
// points to a complete checkpoint. Error if the file system has no links.
void set_link(const Path& folder, const char* name, const Path& checkpoint);
// Removes the link, if it exists.
void remove_link(const Path& folder, const char* name);
// The checkpoint to which the link points; empty if there is no link or no checkpoint at its end.
std::optional<CheckpointEntry> linked_checkpoint(const Path& folder, const char* name);

// Removes the folders and links that interrupted saves and removals left.
void clear_leftovers(const Path& folder);

// Removes all but the `keep` newest checkpoints with steps up to `newest_step`, the one of `best_step` (-1:
// none), and those that these continue. Throws Error, with nothing removed, if the manifest of one of them
// cannot be read. Later steps belong to another course of the run and are not touched. keep <= 0 keeps all
// checkpoints. Call it after the checkpoint of `newest_step` is complete.
void prune_checkpoints(const Path& folder, std::int64_t newest_step, std::int64_t keep,
                       std::int64_t best_step = -1);

// Replaces the folder `path` by the folder `replacement` and removes the old content. Atomic if the file
// system can exchange names; otherwise `path` does not exist for a moment.
void replace_folder(const Path& replacement, const Path& path);

}  // namespace hstu
