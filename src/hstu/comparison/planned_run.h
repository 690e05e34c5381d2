// A run that a sweep or a suite is going to train in a folder of its own.
#pragma once

#include <string>
#include <vector>

#include "hstu/run/folder.h"

namespace hstu {

struct PlannedRun {
  std::string name;              // of its folder
  Path config = {};              // the words of hstu train: the file,
  std::vector<std::string> set;  // what is set on top of it,
  std::int64_t ranks = 1;        // and its processes
  RunOptions options;            // what these words come to
};

enum class RunProgress { missing, begun, ended };
// UsageError if the folder holds a run of another configuration.
RunProgress state_of(const PlannedRun& run, const Path& folder);

}  // namespace hstu
