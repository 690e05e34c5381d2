// The files of a folder that grows, and which of them a dataset has.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

// Kept in a file: what a killed command has begun, the next one finishes.
struct FollowState {
  std::map<std::string, std::int64_t> read = {};  // names of files that are in the dataset, and their bytes
  std::map<std::string, std::int64_t> reading = {};  // of files that are being added
  std::string before = {};                           // id of the dataset when that began

  void save(const Path& file) const;  // atomically
};

// Empty if there is no file. Throws Error naming a file that was altered.
FollowState read_follow_state(const Path& file);

// Files of `folder` that are not in `state`, by name, with their bytes: those of one kind (".parquet", or
// others), none whose name begins with '.' or '_' or ends with ".tmp" or ".partial", and none that was
// written less than `settle` seconds ago. Throws Error if a file that was read has other bytes now.
std::map<std::string, std::int64_t> new_files(const Path& folder, const FollowState& state, double settle);

// Whether hstu prepare parquet reads the file; hstu prepare csv reads the others.
bool is_parquet(const std::string& name);

}  // namespace hstu
