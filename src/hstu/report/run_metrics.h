// The lines of metrics.jsonl as curves and sums.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/report/chart.h"

namespace hstu {

class RunMetrics {
 public:
  // Throws Error naming `file` if a line is not an object with an "event".
  explicit RunMetrics(std::vector<Json> lines, const std::string& file = "metrics.jsonl");

  // The line with the facts of the run; an empty object if there is none.
  const Json& run() const { return run_; }
  // The latest line of an event, or nullptr.
  const Json* last(std::string_view event) const;
  std::vector<const Json*> all(std::string_view event) const;
  // The latest evaluation and those before it that are of the same samples. New data, another choice of
  // samples on a resume, and each window of evaluation.next_window are other samples, so that neither of two
  // such evaluations is the better one.
  std::vector<const Json*> comparable_evaluations() const;

  // The numbers under `key` ("bad_ids.item": inner keys) in the lines of `event`, over samples trained. Omits
  // lines without the key.
  Series curve(std::string_view event, const std::string& key, const std::string& name) const;
  // The same over minutes since the start of the run.
  Series curve_in_time(std::string_view event, const std::string& key, const std::string& name) const;

  // Mean milliseconds of a step by stage, in the order of the step, from the train lines; no line: empty.
  std::vector<std::pair<std::string, double>> step_ms() const;
  // Seconds by stage over the whole run, longest first; the stages of steps come from the train lines' means.
  std::vector<std::pair<std::string, double>> stage_seconds() const;

  // read(), which reads values of the lines. Throws Error naming the file where one has another type.
  template <typename Read>
  auto values(const Read& read) const {
    try {
      return read();
    } catch (const nlohmann::json::exception& error) {
      refuse(error);
    }
  }

 private:
  [[noreturn]] void refuse(const nlohmann::json::exception& error) const;

  std::string file_;
  std::vector<Json> lines_;
  Json run_ = Json::object();
};

}  // namespace hstu
