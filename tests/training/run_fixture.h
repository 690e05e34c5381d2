// Whole runs in a separate folder for each test.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/faults.h"
#include "hstu/training/evaluation.h"
#include "hstu/training/run_parts.h"
#include "hstu/training/train.h"
#include "training/run_files.h"
#include "training/small_dataset.h"

namespace hstu::testing {

class RunTest : public ::testing::Test {
 protected:
  explicit RunTest(std::int64_t users = 40, std::int64_t events_per_user = 30) {
    folder_ = temporary_folder();
    write_small_dataset(folder_ / "dataset", users, events_per_user);
    options_ = small_run(folder_ / "dataset");
  }
  ~RunTest() override { watch_fault_points({}); }

  TrainResult run(const std::string& name, const std::atomic<bool>* stop = nullptr) {
    return train({.options = options_,
                  .folder = create_run_folder(folder_ / name, options_),
                  .version = "test",
                  .stop = stop});
  }
  TrainResult resume(const std::string& name, std::int64_t from_step = -1,
                     const std::vector<std::string>& allowed_changes = {}) {
    return train({.options = options_,
                  .folder = open_run_folder(folder_ / name),
                  .version = "test",
                  .resume = true,
                  .from_step = from_step,
                  .allowed_changes = allowed_changes});
  }

  // Calls `body` at the count-th occurrence of `point`.
  static void at(const std::string& point, int count, std::function<void()> body) {
    watch_fault_points([=, left = count](std::string_view passed) mutable {
      if (passed == point && --left == 0) body();
    });
  }

  // Trains a new run, or goes on with one, until the signal at the count-th occurrence of the point.
  void interrupt(const std::string& name, const std::string& point, int count, bool goes_on = false) {
    std::atomic<bool> stop = false;
    at(point, count, [&] { stop = true; });
    const Path folder = folder_ / name;
    EXPECT_EQ(train({.options = options_,
                     .folder = goes_on ? open_run_folder(folder) : create_run_folder(folder, options_),
                     .version = "test",
                     .stop = &stop,
                     .resume = goes_on})
                  .reason,
              "interrupted");
    watch_fault_points({});
  }
  void interrupt_and_resume(const std::string& name, const std::string& point, int count) {
    interrupt(name, point, count);
    EXPECT_EQ(resume(name).reason, "completed");
  }

  std::vector<Json> log(const std::string& name) const {
    return read_json_lines(folder_ / name / "metrics.jsonl");
  }
  std::vector<Json> log(const std::string& name, const std::string& event) const {
    std::vector<Json> lines;
    for (const Json& line : log(name)) {
      if (line.at("event") == event) lines.push_back(line);
    }
    return lines;
  }
  // Expects that both runs ended with the same bytes and have the same log.
  void expect_same_run(const std::string& a, const std::string& b) const {
    EXPECT_EQ(newest_checkpoint(folder_ / a), newest_checkpoint(folder_ / b)) << b;
    EXPECT_EQ(course(folder_ / a), course(folder_ / b)) << b;
  }

  Path folder_;
  RunOptions options_;
};

// The message of the error that `body` throws; "" if it throws none.
template <typename ErrorType = Error, typename Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "";
}

}  // namespace hstu::testing
