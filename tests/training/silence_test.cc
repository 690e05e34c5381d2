// A step without progress.
#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "hstu/comm/thread_group.h"
#include "training/run_fixture.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

class Silence : public testing::RunTest {
 protected:
  TrainRequest request(const std::string& name) {
    TrainRequest request;
    request.options = options_;
    request.options.training.silence_seconds = 0.2;
    request.folder = create_run_folder(folder_ / name, options_);
    request.version = "test";
    return request;
  }
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1500)); }
};

TEST_F(Silence, OfOneRankNamesStepStageAndLoaders) {
  at("step.middle", 2, pause);
  ::testing::internal::CaptureStderr();
  train(request("run"));
  const std::string words = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(words, HasSubstr("step 2 has made no progress for 0.2 s in the stage \"update\""));
  EXPECT_THAT(words, HasSubstr("thread loader 0 ("));
  EXPECT_THAT(words, HasSubstr("step 2 goes on after "));
}

// The rank that hangs and the one that waits for it both say where they are.
TEST_F(Silence, OfTwoRanksIsSaidByBoth) {
  const TrainRequest requested = request("run");
  at("step.begin", 2, pause);
  ::testing::internal::CaptureStderr();
  run_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == 0)
      train(requested, comm);
    else
      follow(requested, comm);
  });
  const std::string words = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(words, HasSubstr("rank 0: step 2 has made no progress"));
  EXPECT_THAT(words, HasSubstr("thread rank 1 ("));
}

TEST_F(Silence, OfAnEvaluationAndOfASaveIsReported) {
  for (const auto& [point, stage] :
       {std::pair{"evaluation.batch", "evaluation"}, std::pair{"save.file", "save"}}) {
    at(point, 2, pause);
    ::testing::internal::CaptureStderr();
    train(request(stage));
    const std::string words = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(words, HasSubstr(fmt::format("has made no progress for 0.2 s in the stage \"{}\"", stage)));
    EXPECT_THAT(words, HasSubstr("goes on after "));
  }
}

TEST_F(Silence, IsNotReportedWithZeroSeconds) {
  options_.training.silence_seconds = 0;
  at("step.middle", 2, pause);
  ::testing::internal::CaptureStderr();
  TrainRequest silent = request("run");
  silent.options.training.silence_seconds = 0;
  train(silent);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("no progress")));
}

}  // namespace
}  // namespace hstu
