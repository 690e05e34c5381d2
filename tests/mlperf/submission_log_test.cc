#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hstu/mlperf/check.h"
#include "mlperf/scripted_run.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;

std::vector<MllogLine> lines_of(const Path& run) {
  return read_mllog(RunFolder{run}.mlperf()).lines;
}

// Keys behind run_start, with the evaluation at which they are.
std::vector<std::string> course_of(const Path& run) {
  std::vector<std::string> course;
  for (const MllogLine& line : lines_of(run)) {
    if (line.key == "run_start") course = {};
    if (line.key == "train_loss" || !line.metadata.contains("samples_count")) continue;
    course.push_back(
        fmt::format("{} {}", line.key, line.metadata["samples_count"].get<std::int64_t>() / 2'293'760));
  }
  return course;
}

std::string status_of(const Path& run) {
  return logged_run(read_mllog(RunFolder{run}.mlperf())).status;
}

class SubmissionLogTest : public ::testing::Test {
 protected:
  void begin(SubmissionLog& log) const {
    log.end_init();
    log.begin_training(submission_data(options_, kBenchmarkTrainSamples, kBenchmarkEvaluationSamples));
  }

  RunOptions options_ = testing::benchmark_options(32'768);
  Path folder_ = temporary_folder();
  Path run_ = folder_ / "run";
};

TEST_F(SubmissionLogTest, HasEveryLineInItsOrder) {
  testing::write_scripted_run(run_, options_, 42);
  EXPECT_THAT(course_of(run_),
              ElementsAre("block_start 0", "block_stop 41", "eval_start 41", "eval_accuracy 41",
                          "eval_stop 41", "block_start 41", "block_stop 42", "eval_start 42",
                          "eval_accuracy 42", "eval_stop 42", "run_stop 42"));
  std::vector<std::string> keys;
  for (const MllogLine& line : lines_of(run_)) {
    keys.push_back(line.key);
    if (line.key == "eval_samples") break;
  }
  EXPECT_THAT(
      keys,
      ElementsAre("cache_clear", "init_start", "submission_benchmark", "submission_org",
                  "submission_division", "submission_platform", "global_batch_size",
                  "gradient_accumulation_steps", "micro_batch_size", "seed", "config_filename",
                  "lowest_numerical_precision_in_linear", "lowest_numerical_precision_in_attn",
                  "lowest_numerical_precision_in_comm", "tensor_parallelism", "pipeline_parallelism",
                  "context_parallelism", "expert_parallelism", "max_sequence_length", "opt_name",
                  "opt_base_learning_rate", "opt_adam_beta_1", "opt_adam_beta_2", "opt_adam_epsilon",
                  "opt_weight_decay", "opt_gradient_clip_norm", "opt_learning_rate_warmup_steps",
                  "opt_learning_rate_warmup_start_lr", "opt_sparse_name", "opt_sparse_base_learning_rate",
                  "eval_every_data_pct", "init_stop", "run_start", "train_samples", "eval_samples"));
}

TEST_F(SubmissionLogTest, WritesNumbersAsTheOfficialWriterDoes) {
  testing::write_scripted_run(run_, options_, 41);
  const std::string text = read_file(RunFolder{run_}.mlperf());
  const std::string epsilon = R"("event_type": "POINT_IN_TIME", "key": "opt_adam_epsilon", "value": 1e-08, )",
                    place = R"("metadata": {"file": "submission_log.cc", "lineno": )";
  for (const std::string& part :
       {epsilon + place, std::string(R"("key": "opt_base_learning_rate", "value": 4e-06,)"),
        std::string(R"("value": 0.999,)"), std::string(R"("samples_count": 94044160, "epoch_num": 0.041)")})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST_F(SubmissionLogTest, EndsAsAbortedWhenTheRunEndsInAnyOtherWay) {
  {
    SubmissionLog log(RunFolder{run_}.mlperf(), submission_facts(options_, 1), false);
    begin(log);
  }
  EXPECT_EQ(status_of(run_), "aborted");
}

TEST_F(SubmissionLogTest, EndsAsAbortedWhenTheProcessIsKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    SubmissionLog log(RunFolder{run_}.mlperf(), submission_facts(options_, 1), false);
    begin(log);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  // Waits for the lock, which the process that ends the log has until it is done.
  SubmissionLog resumed(RunFolder{run_}.mlperf(), submission_facts(options_, 1), {}, 0, -1);
  EXPECT_EQ(status_of(run_), "") << "the abort belongs to the part that was cut";
  EXPECT_THAT(course_of(run_), ElementsAre("block_start 0"));
}

TEST_F(SubmissionLogTest, KilledLogsHaveAnEnd) {
  const pid_t child = ::fork();
  if (child == 0) {
    SubmissionLog log(RunFolder{run_}.mlperf(), submission_facts(options_, 1), false);
    begin(log);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  for (int tries = 0; tries < 500 && status_of(run_).empty(); ++tries) ::usleep(10'000);
  EXPECT_EQ(status_of(run_), "aborted");
}

TEST_F(SubmissionLogTest, AResumedRunHasNoLineTwice) {
  {
    SubmissionLog log(RunFolder{run_}.mlperf(), submission_facts(options_, 1), false);
    begin(log);
    log.loss(50, 0.13, 1e-7);
    for (const std::int64_t step : {2'870, 2'940}) {
      log.begin_evaluation(step);
      log.end_evaluation(step, 0.7, false);
    }
    log.loss(2'950, 0.12, 1e-7);
    log.begin_evaluation(3'010);
  }
  const Path file = RunFolder{run_}.mlperf();
  {
    SubmissionLog log(file, submission_facts(options_, 1),
                      submission_data(options_, kBenchmarkTrainSamples, kBenchmarkEvaluationSamples), 2'960,
                      2'940);
    EXPECT_EQ(lines_of(run_).back().key, "train_loss");  // of step 2,950
    log.begin_evaluation(3'010);
    log.end_evaluation(3'010, 0.76, true);
  }
  EXPECT_THAT(course_of(run_),
              ElementsAre("block_start 0", "block_stop 41", "eval_start 41", "eval_accuracy 41",
                          "eval_stop 41", "block_start 41", "block_stop 42", "eval_start 42",
                          "eval_accuracy 42", "eval_stop 42", "block_start 42", "block_stop 43",
                          "eval_start 43", "eval_accuracy 43", "eval_stop 43", "run_stop 43"));
  EXPECT_THAT(check_mllog(file).errors, ::testing::IsEmpty());
}

TEST_F(SubmissionLogTest, NoLineHasAWordThatTheOfficialToolsTakeForAKey) {
  testing::write_scripted_run(run_, options_, 41);
  for (const MllogLine& line : lines_of(run_)) {
    for (const std::string word :
         {"global_batch_size", "submission_benchmark", "eval_accuracy", "eval_error", "run_stop"}) {
      if (line.key == word) continue;
      EXPECT_EQ(line.text.find(word), std::string::npos) << line.text;
    }
  }
}

}  // namespace
}  // namespace hstu
