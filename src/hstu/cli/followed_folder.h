// The files of a folder that grows, and which of them a dataset has.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/files.h"

namespace hstu {

// A file as it was when it was looked at.
struct FollowedFile {
  std::int64_t bytes = 0;
  std::int64_t modified = -1;  // nanoseconds since 1970; -1: an earlier version did not write it
  std::string checksum = {};   // "": the same
  bool without_events = false;

  bool operator==(const FollowedFile&) const = default;
};
using FollowedFiles = std::map<std::string, FollowedFile>;  // by their paths below the folder

// Kept in a file: what a killed command has begun, the next one finishes.
struct FollowState {
  FollowedFiles read = {};             // that are in the dataset
  FollowedFiles reading = {};          // that are being added
  std::string before = {};             // id of the dataset when that began
  std::set<std::string> ignored = {};  // that the schema does not name: one of each folder

  void save(const Path& file) const;  // atomically
};

// Empty if there is no file. Throws Error naming a file that was altered.
FollowState read_follow_state(const Path& file);

// What a look at the folder found besides files that are in the dataset as they are.
struct Look {
  FollowedFiles files = {};               // new ones that are complete
  std::vector<std::string> waiting = {};  // new ones that may still be written
  bool clock_ahead = false;               // one of `waiting` has a time that is yet to come
  std::vector<std::string> changed = {};  // "x.csv: had 10 bytes when it was read, and has 20 now"
  std::set<std::string> ignored = {};     // as in FollowState
};

// The files that a schema names in a folder, as hstu prepare finds them, but for those whose path has a part
// that begins with '.' or '_' or ends as names of unfinished files and of checksums do.
class FollowedFolder {
 public:
  // A file is complete when it is unchanged for `settle` seconds: by its time, or, if that is yet to come,
  // from one look to another. UsageError if the schema cannot be read.
  FollowedFolder(Path folder, const Path& schema, double settle);

  const Path& path() const { return folder_; }
  // Prints a note, once each, about files that are left alone. Throws Error if there is no folder any more.
  Look look(const FollowState& state);
  // Whether all files are as they were.
  bool has(const FollowedFiles& files) const;

 private:
  std::set<std::string> named() const;
  std::set<std::string> not_named(const std::set<std::string>& named) const;
  void consider(const std::string& name, const FollowedFile& file, const FollowState& state, Look& look);
  bool is_known(const std::string& name, const FollowedFile& file, const FollowState& state, Look& look);
  bool is_complete(const std::string& name, const FollowedFile& file, Look& look);
  void add(const std::string& name, FollowedFile file, const FollowState& state, Look& look);
  const std::string& checksum(const std::string& name, const FollowedFile& file);
  void note(const std::string& name, const std::string& what);

  struct Seen {
    FollowedFile file;  // without checksum
    Clock::time_point since;
    std::string checksum = {};
  };

  Path folder_;
  std::vector<std::string> patterns_;
  std::set<std::string> mappings_;  // files of the schema's attributes
  bool with_header_;
  double settle_;
  std::map<std::string, Seen> seen_ = {};
  std::map<std::string, std::string> noted_ = {};
};

}  // namespace hstu
