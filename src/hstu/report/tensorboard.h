// TensorBoard event files, converted line by line from metrics.jsonl.
#pragma once

#include <cstdio>
#include <memory>
#include <span>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

// The numbers of a line {"event": E, "step": S, "time_s": T, ...} become scalars E/KEY (E/KEY/INNER if a
// value is an object) at step S. Lines without a step yield none.
class TensorboardWriter {
 public:
  // Rewrites RUN/events.out.tfevents.* from the existing lines of the run: after a resume the file holds the
  // same steps as metrics.jsonl, none twice.
  TensorboardWriter(const Path& run, std::span<const Json> lines);

  // The line reaches the file before the call returns. A failure (disk full) is reported once and ends the
  // event file, not the run: metrics.jsonl holds the same numbers.
  void write(const Json& line);

 private:
  void append(const std::string& record);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Path path_;
  std::unique_ptr<std::FILE, Close> file_;  // null: writing has failed
};

}  // namespace hstu
