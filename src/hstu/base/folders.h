// Folders, names and contents that a power failure does not take back.
#pragma once

#include "hstu/base/files.h"

namespace hstu {

// Renames a file, a folder or a link, replacing `to` as rename(2) does, and fsyncs the folder of `to`.
void rename_and_sync(const Path& from, const Path& to);

// Fsyncs a file that others have written. Throws Error naming it if that fails.
void sync_file(const Path& path);

// Creates the folder, and those above it that are missing. Fsyncs the folder of each new one.
void create_and_sync(const Path& folder);

// Whether this program has committed a StagedFolder and is writing no other one: all it was to make is there.
bool all_folders_committed();

}  // namespace hstu
