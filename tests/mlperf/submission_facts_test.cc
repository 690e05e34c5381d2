#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/text.h"
#include "hstu/mlperf/closed_values.h"
#include "mlperf/scripted_run.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const RunOptions& options, int ranks = 1) {
  try {
    check_submission(options, ranks);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(SubmissionFacts, TheConfigurationOfTheBenchmarkIsAllowed) {
  EXPECT_EQ(refusal_of(testing::benchmark_options(8192), 8), "");
  RunOptions options = testing::benchmark_options(32'768);
  options.precision = Precision::bf16;
  options.tables.wire_rows = DType::f16;
  options.tables.by_name["uid"].place = "host";
  EXPECT_EQ(refusal_of(options, 32), "");
}

// Another value for each key that the closed division fixes: every one is refused by its name.
TEST(SubmissionFacts, TheClosedDivisionNamesEveryValueThatItForbids) {
  const std::string path = std::string(HSTU_SOURCE_DIR) + "/configs/yambda-5b-mlperf.toml";
  const std::vector<std::string> submitter{"submission.organization=\"a\"", "submission.platform=\"b\"",
                                           "mlperf=true"};
  int keys = 0;
  for (const std::string& line : split(std::string(kClosedValues), '\n')) {
    const std::size_t end = line.find(" = ");
    if (end == std::string::npos || line.starts_with("features.") || line.starts_with("model.kind")) continue;
    const std::string key = line.substr(0, end), value = line.substr(end + 3);
    std::string other = value == "true"                        ? "false"
                        : value == "false"                     ? "true"
                        : value.find('.') != std::string::npos ? "0.5"
                                                               : "7";
    if (key == "data.pools") other = "[\"like\"]";
    if (key == "data.history_strategy") other = "last_n";
    if (key == "model.attention_scale") other = "max_sequence";
    if (key == "model.query_time") other = "candidate";
    if (key == "dense_optimizer.kind") other = "adamw";
    if (key == "sparse_optimizer.kind") other = "adagrad";
    if (key == "schedule.decay") other = "linear";
    if (key == "evaluation.split") other = "valid";
    if (key == "warm_start.checkpoint") other = "x";
    if (key == "evaluation.holdout_fraction") other = "0.25";
    std::vector<std::string> set = submitter;
    set.push_back(fmt::format("{}={}", key, other));
    const auto options = load_config<RunOptions>(path, set);
    EXPECT_THAT(refusal_of(options), HasSubstr("\n  " + key + " = ")) << other;
    ++keys;
  }
  EXPECT_GT(keys, 50);
}

TEST(SubmissionFacts, AllRefusalsComeTogether) {
  RunOptions options = testing::benchmark_options(8192);
  options.submission.organization = "";
  options.sparse.learning_rate = 2e-6;
  options.features.context.pop_back();
  options.tables.by_name["item"].capacity = "200M";
  options.tables.by_name["uid"].place = "auto";
  options.ranks.context = 0;
  const std::string text = refusal_of(options, 3);
  for (const char* const part :
       {"submission.organization = \"\"",
        "training.batch_size = 8192: micro_batch_size needs a multiple of the 3 ranks",
        "sparse_optimizer.learning_rate = 2e-06: must be dense_optimizer.learning_rate, 1e-06",
        "features.context[7].name is missing", "tables.item.capacity = \"200M\": must be \"\"",
        "tables.place = \"auto\"", "ranks.context = 0: a plan reads the dataset"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(SubmissionFacts, RatesOutsideTheBandAreRefusedInBothDivisions) {
  RunOptions options = testing::benchmark_options(8192);
  options.dense.learning_rate = options.sparse.learning_rate = 1.6e-6;
  EXPECT_THAT(
      refusal_of(options),
      HasSubstr("dense_optimizer.learning_rate = 1.6e-06: must be, with a batch of 8192, from 5e-07"));
  options.submission.division = SubmissionDivision::open;
  EXPECT_THAT(refusal_of(options), HasSubstr("sparse_optimizer.learning_rate = 1.6e-06"));
  options.dense.learning_rate = options.sparse.learning_rate = 1.4e-6;
  options.data.options.history_length = 100;
  EXPECT_EQ(refusal_of(options), "");
}

TEST(SubmissionFacts, NamesThatWouldMisleadTheOfficialToolsAreRefused) {
  RunOptions options = testing::benchmark_options(8192);
  options.submission.platform = "my run_stop";
  EXPECT_THAT(refusal_of(options),
              ::testing::AllOf(HasSubstr("no blank"), HasSubstr("would take the word run_stop")));
  options.submission.platform = "h100";
  options.submission.rules = SubmissionRules::rehearsal;
  EXPECT_THAT(refusal_of(options), HasSubstr("a rehearsal says so"));
}

TEST(SubmissionFacts, TheDataMustBeTheBenchmarksUnlessTheyStandInForThem) {
  RunOptions options = testing::benchmark_options(8192);
  EXPECT_THROW(submission_data(options, 1000, 100), Error);
  options.submission.rules = SubmissionRules::stand_in;
  EXPECT_EQ(submission_data(options, 1000, 100).train_samples, 1000);
}

// A value of the header; "missing" without the key.
Json header_value(const SubmissionFacts& facts, const std::string& key) {
  for (const auto& [name, value] : facts.header)
    if (name == key) return value;
  return "missing";
}

TEST(SubmissionFacts, TheHeaderTellsPrecisionsAndSizesOfTheRun) {
  RunOptions options = testing::benchmark_options(8192);
  options.precision = Precision::bf16;
  options.tables.wire_gradients = DType::f16;
  options.training.accumulate = 2;
  const SubmissionFacts facts = submission_facts(options, 4);
  EXPECT_EQ(facts.batch, 16'384);
  EXPECT_EQ(header_value(facts, "lowest_numerical_precision_in_linear"), "bfloat16");
  EXPECT_EQ(header_value(facts, "lowest_numerical_precision_in_comm"), "fp16");
  EXPECT_EQ(header_value(facts, "micro_batch_size"), 2048);
  EXPECT_EQ(header_value(facts, "gradient_accumulation_steps"), 2);
  EXPECT_EQ(header_value(facts, "max_sequence_length"), 4096);
  EXPECT_EQ(header_value(facts, "tensor_parallelism"), 1);
  EXPECT_EQ(header_value(facts, "context_parallelism"), 1);
}

TEST(SubmissionFacts, TheHeaderTellsHowRanksShareLayers) {
  RunOptions options = testing::benchmark_options(8192);
  options.precision = Precision::fp32;
  options.ranks.tensor = 2;
  options.ranks.context = 4;
  SubmissionFacts facts = submission_facts(options, 16);
  EXPECT_EQ(header_value(facts, "tensor_parallelism"), 2);
  EXPECT_EQ(header_value(facts, "context_parallelism"), 4);
  EXPECT_EQ(header_value(facts, "micro_batch_size"), 4096);
  EXPECT_EQ(header_value(facts, "lowest_numerical_precision_in_comm"), "fp32");
  options.precision = Precision::bf16;
  EXPECT_EQ(header_value(submission_facts(options, 16), "lowest_numerical_precision_in_comm"), "bfloat16");
  facts = submission_facts(options, 1);
  EXPECT_EQ(header_value(facts, "tensor_parallelism"), 1);
  EXPECT_EQ(header_value(facts, "micro_batch_size"), 8192);
  EXPECT_EQ(header_value(facts, "lowest_numerical_precision_in_comm"), "fp32");
}

}  // namespace
}  // namespace hstu
