// The folder of a submission: results, systems and benchmarks as the official tools and rules want them.
#pragma once

#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/mlperf/package_check.h"

namespace hstu {

struct PackWords {
  std::vector<Path> runs;  // folders of runs, in the order of result_0.txt, ...
  Path output;             // the organization's folder, made by pack()
  std::string status;      // one of kSystemStatuses
  int nodes = 1;
};

struct Package {
  PackageVerdict verdict;
  Path system;                      // systems/SYSTEM.json
  std::vector<std::string> unseen;  // its fields that only the submitter knows
};

// Writes the folder, completely or not at all, whatever the verdict. UsageError, with nothing written, if a
// run has no log, if two runs name another submitter or have another configuration than the rest (but for
// seeds), or if a name or a size is one that the official repository checker refuses.
Package pack(const PackWords& words);

}  // namespace hstu
