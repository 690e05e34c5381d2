// TensorBoard event files, made line by line out of metrics.jsonl.
#pragma once

#include <cstdio>
#include <memory>
#include <span>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

// The numbers of a line {"event": E, "step": S, "time_s": T, ...} become scalars E/KEY (E/KEY/INNER where a
// value is an object) at step S. Lines without a step have none.
class TensorboardWriter {
 public:
  // Writes RUN/events.out.tfevents.* anew from the lines the run has so far: after a resume the file holds
  // what metrics.jsonl holds, no step twice.
  TensorboardWriter(const Path& run, std::span<const Json> lines);

  // The line reaches the file before the call returns. A failure (disk full) is said once and ends the event
  // file, not the run: metrics.jsonl holds the same numbers.
  void write(const Json& line);

 private:
  void append(const std::string& record);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Path path_;
  std::unique_ptr<std::FILE, Close> file_;  // null: given up
};

}  // namespace hstu
