#include "hstu/run/folder.h"

#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

RunOptions options_of_a_run() {
  RunOptions options;
  options.data.path = "dataset";
  return options;
}

TEST(RunFolder, LatestIsTheRunWhoseLogWasWrittenLast) {
  const Path folder = temporary_folder();
  for (const char* name : {"a", "b", "c"}) {
    create_run_folder(folder / "runs" / name, options_of_a_run());
    write_file(folder / "runs" / name / "metrics.jsonl", "");
  }
  fs::create_directories(folder / "runs/no_run");
  fs::last_write_time(folder / "runs/b/metrics.jsonl",
                      fs::last_write_time(folder / "runs/b/metrics.jsonl") + std::chrono::hours(1));
  EXPECT_EQ(latest_run(folder / "runs").path, folder / "runs/b");
  fs::create_directories(folder / "empty");
  try {
    latest_run(folder / "empty");
    FAIL() << "found a run in a folder without runs";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--runs"));
  }
}

TEST(RunFolder, ARunWithoutAStepIsRemovedAndAnythingElseStays) {
  const Path folder = temporary_folder();
  const RunFolder refused = create_run_folder(folder / "refused", options_of_a_run());
  write_file(refused.metrics(), "{\"event\":\"run\"}\n");
  write_file(refused.path / "events.out.tfevents.1.host", "");
  fs::create_directories(refused.checkpoints());
  discard_run_folder(refused);
  EXPECT_FALSE(fs::exists(refused.path));
  EXPECT_THROW(open_run_folder(refused.path), UsageError);
  const RunFolder begun = create_run_folder(folder / "begun", options_of_a_run());
  fs::create_directories(begun.checkpoints() / "step_00000001");
  discard_run_folder(begun);
  EXPECT_EQ(read_run_options(open_run_folder(begun.path)).data.path, "dataset");
  EXPECT_THROW(create_run_folder(begun.path, options_of_a_run()), UsageError);
  const RunFolder shared = create_run_folder(folder / "shared", options_of_a_run());
  write_file(shared.path / "notes.txt", "mine");
  discard_run_folder(shared);
  EXPECT_TRUE(fs::exists(shared.path / "notes.txt"));
}

}  // namespace
}  // namespace hstu
