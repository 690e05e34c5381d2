// External faults of a run: a full disk, torn files, another dataset, another trainer.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hstu/base/checksum.h"
#include "hstu/run/lock.h"
#include "training/run_fixture.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;

class Faults : public testing::RunTest {
 protected:
  Faults() : RunTest(12, 24) {
    options_.training.batch_size = 8;
    options_.evaluation.every_data_fraction = 0.2;
    options_.checkpoint = {.every_steps = 4, .every_seconds = 0, .keep = 0};
    options_.metrics.every_steps = 1;
  }
  ~Faults() override { limit_files(RLIM_INFINITY); }

  // Limits the size of files, which fails like a full disk.
  static void limit_files(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    setrlimit(RLIMIT_FSIZE, &limit);
  }
};

TEST_F(Faults, AFullDiskInASaveLetsTheRunGoOn) {
  run("whole");
  int saves = 0, steps = 0;
  watch_fault_points([&](std::string_view point) {
    if (point == "save.begin" && ++saves == 2) limit_files(1000);
    if (point == "step.begin" && ++steps == 11) limit_files(RLIM_INFINITY);
  });
  ::testing::internal::CaptureStderr();
  const TrainResult result = run("run");
  const std::string terminal = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(result.reason, "completed");
  EXPECT_THAT(terminal, AllOf(HasSubstr("WARNING: the save of step 8 failed"), HasSubstr("File too large"),
                              HasSubstr("no line is missing")));
  const auto failed = log("run", "checkpoint_failed");
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].at("step"), 8);
  EXPECT_THAT(failed[0].at("error").get<std::string>(), HasSubstr("step_00000008"));
  auto names = testing::checkpoint_names(folder_ / "whole");
  std::erase(names, "step_00000008");
  EXPECT_EQ(testing::checkpoint_names(folder_ / "run"), names)
      << "complete checkpoints remain, partial ones do not";
  EXPECT_EQ(testing::newest_checkpoint(folder_ / "run"), testing::newest_checkpoint(folder_ / "whole"));
  auto lines = testing::course(folder_ / "whole");
  std::erase_if(lines, [](const std::string& line) {
    return line.find("\"checkpoint\",\"step\":8,") != std::string::npos;
  });
  EXPECT_EQ(testing::course(folder_ / "run"), lines) << "no line was lost while the disk was full";
}

// Standard error may be a file on the same disk.
TEST_F(Faults, AFullDiskInTheLastSaveIsAnErrorAndTheRunGoesOnFromTheOneBefore) {
  run("whole");
  at("save.begin", 8, [] { limit_files(0); });
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(message_of([&] { run("run"); }),
              AllOf(HasSubstr("the last save failed"), HasSubstr("--resume")));
  limit_files(RLIM_INFINITY);
  ::testing::internal::GetCapturedStderr();
  watch_fault_points({});
  resume("run");
  expect_same_run("whole", "run");
}

TEST_F(Faults, ATornOrAlteredCheckpointIsRefusedAndTheOneBeforeIsOffered) {
  run("whole");
  run("run");
  const Path newest = find_checkpoint(folder_ / "run/checkpoints", -1);
  std::string bytes = read_file(newest / "dense.safetensors");
  bytes[bytes.size() / 2] ^= 1;
  write_file(newest / "dense.safetensors", bytes);
  EXPECT_THAT(message_of([&] { resume("run"); }),
              AllOf(HasSubstr("dense.safetensors"), HasSubstr("step_00000028"), HasSubstr("--from-step 28")));
  resume("run", 28);
  expect_same_run("whole", "run");
}

TEST_F(Faults, AnotherDatasetIsRefusedNamingBoth) {
  options_.training.max_steps = 4;
  run("run");
  const std::string before = read_manifest(folder_ / "dataset").id;
  fs::remove_all(folder_ / "dataset");
  testing::write_small_dataset(folder_ / "dataset", 13, 24);
  const std::string now = read_manifest(folder_ / "dataset").id;
  EXPECT_THAT(message_of([&] { resume("run"); }), AllOf(HasSubstr(before), HasSubstr(now)));
}

TEST_F(Faults, ASecondTrainerIsRefusedNamingTheFirst) {
  const RunFolder folder = create_run_folder(folder_ / "run", options_);
  const RunLock first(folder.lock());
  EXPECT_THAT(message_of<UsageError>([&] { resume("run"); }),
              AllOf(HasSubstr(folder.path.string()), HasSubstr(fmt::format("process {} on ", ::getpid()))));
  EXPECT_FALSE(fs::exists(folder.metrics()));
}

TEST_F(Faults, TheBaselineIsScoredOnceForARun) {
  options_.training.max_steps = 5;
  run("run");
  const RunFolder folder = open_run_folder(folder_ / "run");
  Json kept = Json::parse(read_file(folder.baseline()));
  const double computed = kept["metrics"]["auc"];
  kept["metrics"]["auc"] = 0.125;
  write_file(folder.baseline(), kept.dump());
  Experiment experiment(options_);
  EXPECT_EQ(Evaluator(experiment, folder.baseline()).run()->baseline.find("auc"), computed)
      << "a file that was altered was believed";
  kept["checksum"] = checksum(Json{{"of", kept["of"]}, {"metrics", kept["metrics"]}}.dump());
  write_file(folder.baseline(), kept.dump());
  EXPECT_EQ(Evaluator(experiment, folder.baseline()).run()->baseline.find("auc"), 0.125) << "it was not read";
  EXPECT_NE(Evaluator(experiment).run()->baseline.find("auc"), 0.125);
  options_.evaluation.holdout.fraction = 0.3;
  Experiment other(options_);
  EXPECT_NE(Evaluator(other, folder.baseline()).run()->baseline.find("auc"), 0.125) << "of another hold-out";
  write_file(folder.baseline(), "{\"of\": torn");
  EXPECT_NE(Evaluator(experiment, folder.baseline()).run()->baseline.find("auc"), 0.125);
}

}  // namespace
}  // namespace hstu
