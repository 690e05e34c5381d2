// RUN/mlperf/result_0.txt: the log of a run for MLPerf Training, in the official format, by rank 0 alone. Its
// lines, their order and their values are those of docs/mlperf.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/files.h"
#include "hstu/base/json.h"
#include "hstu/mlperf/abort_watch.h"
#include "hstu/mlperf/grid.h"

namespace hstu {

using LoggedValues = std::vector<std::pair<std::string, Json>>;

// What a log says of a run.
struct SubmissionFacts {
  LoggedValues header;     // in the order of their lines
  std::int64_t batch = 0;  // samples that one step counts as
};
// Known when the dataset is open.
struct SubmissionData {
  std::int64_t train_samples = 0, evaluation_samples = 0;
  EvaluationGrid grid;
};

class SubmissionLog {
 public:
  // Begins a log: cache_clear, init_start and the header. An earlier one is replaced.
  SubmissionLog(const Path& file, SubmissionFacts facts, bool caches_cleared);
  // Continues the log of a run whose checkpoint has `step` steps, the last of them evaluated at
  // `evaluated_at` (-1: none): what came later is removed. Error if the log is missing.
  SubmissionLog(const Path& file, SubmissionFacts facts, const SubmissionData& data, std::int64_t step,
                std::int64_t evaluated_at);
  // If nothing else ended the log, ends it with run_stop, status "aborted".
  ~SubmissionLog();
  SubmissionLog(const SubmissionLog&) = delete;
  SubmissionLog& operator=(const SubmissionLog&) = delete;

  // init_stop and run_start: from here on datasets may be opened. Returns the seconds since the log began.
  double end_init();
  // train_samples, eval_samples, and the first block begins.
  void begin_training(const SubmissionData& data);

  const EvaluationGrid& grid() const { return data_.grid; }
  // The mean loss of training until `step`, and the learning rate.
  void loss(std::int64_t step, double loss, double rate);
  // A point of the grid: the block ends, the evaluation begins; then its result, and run_stop with status
  // "success" if the target is reached, else the next block. A result that is not defined counts as 0.
  void begin_evaluation(std::int64_t step);
  void end_evaluation(std::int64_t step, std::optional<double> auc, bool reached);

 private:
  enum class Event { point, start, end };

  void open(const Path& file);
  // One line, by one call of the system. Throws Error naming the file if it cannot be written completely.
  void put(Event event, const std::string& key, const Json& value, const Json& metadata = Json::object(),
           int line_of_source = __builtin_LINE());
  Json at(std::int64_t step) const;

  Path file_;
  SubmissionFacts facts_;
  SubmissionData data_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;  // bytes of complete lines
  bool ended_ = false;
  std::int64_t start_ms_;  // since 1970, at start_
  Clock::time_point start_ = Clock::now();
  std::unique_ptr<AbortWatch> watch_;
};

}  // namespace hstu
