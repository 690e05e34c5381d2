// The files of a run, in a form in which two runs can be compared.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hstu/base/json_lines.h"
#include "hstu/run/state.h"

namespace hstu::testing {

// The log without fields that hold times, and memory and caches, which are those of the process.
inline std::vector<Json> timeless_log(const Path& run) {
  std::vector<Json> lines;
  for (Json line : read_json_lines(run / "metrics.jsonl")) {
    std::vector<std::string> times;
    for (const auto& [key, value] : line.items()) {
      for (const char* unit : {"_ms", "_s", "tflops", "mfu", "_mib", "caches"}) {
        if (key.ends_with(unit)) times.push_back(key);
      }
    }
    for (const std::string& key : times) line.erase(key);
    lines.push_back(std::move(line));
  }
  return lines;
}

// The timeless log without the lines of interruptions: no number of interruptions may change it.
inline std::vector<std::string> course(const Path& run) {
  std::vector<std::string> lines;
  for (const Json& line : timeless_log(run)) {
    if (line.at("event") == "resume" || line.at("event") == "checkpoint_failed") continue;
    if (line.at("event") == "checkpoint" && line.at("reason") == "interrupted") continue;
    lines.push_back(line.dump());
  }
  return lines;
}

// Every file of a run's newest checkpoint, by name.
inline std::map<std::string, std::string> newest_checkpoint(const Path& run) {
  std::map<std::string, std::string> files;
  const Path path = find_checkpoint(run / "checkpoints", -1);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files[entry.path().lexically_relative(path)] = read_file(entry.path());
  }
  return files;
}

// Those of its tables alone.
inline std::map<std::string, std::string> table_files(const Path& run) {
  auto files = newest_checkpoint(run);
  std::erase_if(files, [](const auto& file) { return file.first.find("tables/") == std::string::npos; });
  return files;
}

// The names below RUN/checkpoints, in order.
inline std::vector<std::string> checkpoint_names(const Path& run) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints"))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace hstu::testing
