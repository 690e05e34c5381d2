#include "hstu/mlperf/submission_log.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/mlperf/log_lines.h"

namespace hstu {
namespace {

std::int64_t wall_clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string ascii(const Json& value) {
  return value.dump(-1, ' ', true);
}

// With the separators of the official writer.
std::string members(const Json& object) {
  std::string text;
  for (const auto& [key, value] : object.items()) text += fmt::format(", {}: {}", ascii(key), ascii(value));
  return text;
}

// Whether a line is of the run until the checkpoint. Lines without a count precede the first step.
bool is_kept(const MllogLine& line, std::int64_t samples, std::int64_t evaluated) {
  if (!line.metadata.is_object()) return false;
  if (line.key == "run_stop" && line.metadata.value("status", "") != "success") return false;
  const auto count = line.metadata.find("samples_count");
  if (count == line.metadata.end() || !count->is_number()) return true;
  return count->get<double>() <= static_cast<double>(line.key == "train_loss" ? samples : evaluated);
}

}  // namespace

SubmissionLog::SubmissionLog(const Path& file, SubmissionFacts facts, bool caches_cleared)
    : file_(file), facts_(std::move(facts)), start_ms_(wall_clock_ms()) {
  std::filesystem::create_directories(file.parent_path());
  open(file);
  check(::ftruncate(descriptor_, 0) == 0, "cannot empty {}: {}", file.string(), std::strerror(errno));
  watch_ = std::make_unique<AbortWatch>(descriptor_);
  put(Event::point, "cache_clear", caches_cleared);
  put(Event::start, "init_start", nullptr);
  for (const auto& [key, value] : facts_.header) put(Event::point, key, value);
}

SubmissionLog::SubmissionLog(const Path& file, SubmissionFacts facts, const SubmissionData& data,
                             std::int64_t step, std::int64_t evaluated_at)
    : file_(file), facts_(std::move(facts)), data_(data), start_ms_(wall_clock_ms()) {
  check(std::filesystem::exists(file), "{} is missing: a run for MLPerf cannot be continued without its log",
        file.string());
  open(file);
  const std::int64_t samples = step * facts_.batch, evaluated = evaluated_at * facts_.batch;
  std::string kept;
  for (const MllogLine& line : read_mllog(file).lines) {
    if (!is_kept(line, samples, std::max<std::int64_t>(evaluated, 0))) break;
    kept += line.text + "\n";
    ended_ = line.key == "run_stop";
    start_ms_ = std::max(start_ms_, static_cast<std::int64_t>(line.time_ms));
  }
  check(read_file(file).starts_with(kept), "{} was altered: move the run away and begin a new one",
        file.string());
  check(::ftruncate(descriptor_, static_cast<off_t>(kept.size())) == 0, "cannot cut {}: {}", file.string(),
        std::strerror(errno));
  size_ = static_cast<std::int64_t>(kept.size());
  if (!ended_) watch_ = std::make_unique<AbortWatch>(descriptor_);
}

SubmissionLog::~SubmissionLog() {
  if (!ended_) append_abort(descriptor_);
  watch_.reset();
  ::close(descriptor_);
}

void SubmissionLog::open(const Path& file) {
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  check(descriptor_ >= 0, "cannot open {} for appending: {}", file.string(), std::strerror(errno));
  // The child of a run that was just killed still writes its last line.
  while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) continue;
}

void SubmissionLog::put(Event event, const std::string& key, const Json& value, const Json& metadata,
                        int line_of_source) {
  const std::int64_t now =
      start_ms_ + std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_).count();
  constexpr const char* kEvents[] = {"POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"};
  const std::string line = fmt::format(
      "{}{{\"namespace\": \"\", \"time_ms\": {}, \"event_type\": \"{}\", \"key\": {}, \"value\": {}, "
      "\"metadata\": "
      "{{\"file\": \"submission_log.cc\", \"lineno\": {}{}}}}}\n",
      kMllogToken, now, kEvents[static_cast<int>(event)], ascii(key), ascii(value), line_of_source,
      members(metadata));
  ssize_t written = 0;
  while ((written = ::write(descriptor_, line.data(), line.size())) < 0 && errno == EINTR) continue;
  if (written != static_cast<ssize_t>(line.size())) {
    const int error = written < 0 ? errno : ENOSPC;
    if (written > 0 && ::ftruncate(descriptor_, size_) != 0)
      fail("cannot write {}: {}; its last line is incomplete", file_.string(), std::strerror(error));
    fail("cannot write {}: {}", file_.string(), std::strerror(error));
  }
  size_ += written;
}

Json SubmissionLog::at(std::int64_t step) const {
  const std::int64_t samples = step * facts_.batch;
  return {{"samples_count", samples},
          {"epoch_num", static_cast<double>(samples) / static_cast<double>(data_.train_samples)}};
}

double SubmissionLog::end_init() {
  put(Event::end, "init_stop", nullptr);
  put(Event::start, "run_start", nullptr);
  return seconds_since(start_);
}

void SubmissionLog::begin_training(const SubmissionData& data) {
  data_ = data;
  put(Event::point, "train_samples", data.train_samples);
  put(Event::point, "eval_samples", data.evaluation_samples);
  put(Event::start, "block_start", nullptr, at(0));
}

void SubmissionLog::loss(std::int64_t step, double loss, double rate) {
  constexpr std::int64_t kLargest = 40 << 20;  // the official repository refuses 50 MB
  if (ended_ || size_ > kLargest) return;
  put(Event::point, "train_loss", loss, {{"samples_count", step * facts_.batch}, {"lr", rate}});
}

void SubmissionLog::begin_evaluation(std::int64_t step) {
  if (ended_ || !data_.grid.has(step)) return;
  put(Event::end, "block_stop", nullptr, at(step));
  put(Event::start, "eval_start", nullptr, at(step));
}

void SubmissionLog::end_evaluation(std::int64_t step, std::optional<double> auc, bool reached) {
  if (ended_ || !data_.grid.has(step)) return;
  put(Event::point, "eval_accuracy", auc.value_or(0.0), at(step));
  put(Event::end, "eval_stop", nullptr, at(step));
  if (!reached) return put(Event::start, "block_start", nullptr, at(step));
  Json end{{"status", "success"}};
  end.update(at(step));
  put(Event::end, "run_stop", nullptr, end);
  ended_ = true;
}

}  // namespace hstu
