#include "hstu/prepare/index_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events/yambda_log.h"
#include "hstu/base/error.h"
#include "hstu/events/builtin_schemas.h"
#include "hstu/prepare/prepare.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

class IndexCommand : public testing::Test {
 protected:
  IndexCommand() {
    std::vector<YambdaEvent> events;
    for (std::int64_t n = 0; n < 30; ++n) {
      events.push_back(
          {.uid = 1 + n / 10, .timestamp = 1000 * (n % 10), .item_id = n, .event_type = "listen"});
    }
    std::filesystem::create_directories(folder_ / "log");
    write_yambda(folder_ / "log", events);
    prepare(yambda_schema(folder_ / "log", {.test_days = 0}), folder_ / "log", data_);
  }
  void run(const std::string& words) const {
    CLI::App app;
    add_index_command(app);
    app.parse("index " + data_.string() + " " + words);
  }
  const Path folder_ = temporary_folder();
  const Path data_ = folder_ / "data";
};

TEST_F(IndexCommand, StoresTheIndexItsWordsAskFor) {
  testing::internal::CaptureStdout();
  run("--min-history 4 --window-seconds 2000 --train-user-fraction 0.5 --split-salt 3");
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr("m4_w2000_u0.5_s3"));
  const auto index = read_anchor_index(
      Dataset(data_),
      {.min_history = 4, .window_seconds = 2000, .users = {.train_fraction = 0.5, .salt = 3}});
  ASSERT_TRUE(index);
  EXPECT_EQ(index->count(), 3 * 6);
  EXPECT_EQ(index->windows(), 3);
}

TEST_F(IndexCommand, RulesThatMakeNoSenseAreRefused) {
  EXPECT_THROW(run("--min-history -1"), CLI::ValidationError);
  EXPECT_THROW(run("--min-history 10"), UsageError);  // nobody has eleven events
  EXPECT_THROW(run("--train-user-fraction 2"), CLI::ValidationError);
  EXPECT_TRUE(verify_anchor_indices(Dataset(data_)).empty());
}

TEST_F(IndexCommand, APreparationWithoutAnchorsIsWholeAllTheSame) {
  testing::internal::CaptureStderr();
  prepare(yambda_schema(folder_ / "log", {.test_days = 0}), folder_ / "log", folder_ / "other", {}, {},
          AnchorRule{.min_history = 4086, .window_seconds = 86'400, .users = {}});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(testing::HasSubstr("note: no index"), testing::HasSubstr("min_history = 4086")));
  EXPECT_EQ(Dataset(folder_ / "other").events(), 30);
}

}  // namespace
}  // namespace hstu
