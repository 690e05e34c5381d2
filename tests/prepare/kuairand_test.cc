// KuaiRand's published files, in miniature.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/dataset/dataset.h"
#include "hstu/events/builtin_schemas.h"
#include "hstu/prepare/prepare.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::HasSubstr;

constexpr const char* kHeader =
    "user_id,video_id,date,hourmin,time_ms,is_click,is_like,is_follow,is_comment,is_forward,is_hate,long_"
    "view,"
    "play_time_ms,duration_ms,profile_stay_time,comment_stay_time,is_profile_enter,is_rand,tab\n";

// An event of the log; its actions as the text "click,like,...,long_view".
std::string row(int user, int video, std::int64_t time_ms, const char* actions, int tab) {
  return fmt::format("{},{},20220408,1500,{},{},5000,9000,0,0,0,0,{}\n", user, video, time_ms, actions, tab);
}

constexpr std::int64_t kStart = 1'649'400'000'000;

class Kuairand : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file(folder_ / name, text);
  }
  void write_logs(const std::string& variant, const std::string& part = "") const {
    write(fmt::format("data/log_standard_4_08_to_4_21_{}{}.csv", variant, part),
          kHeader + row(3, 9, kStart + 1900, "1,0,0,0,0,0,1", 1) +
              row(3, 8, kStart + 1100, "0,0,0,0,0,0,0", 1));
    write(fmt::format("data/log_standard_4_22_to_5_08_{}{}.csv", variant, part),
          kHeader + row(0, 7, kStart + 2'000'000'000, "1,1,0,0,0,1,0", 4));
    write(fmt::format("data/log_random_4_22_to_5_08_{}.csv", variant),
          kHeader + row(5, 5, kStart, "1,0,0,0,0,0,0", 1));
  }
  const Path folder_ = temporary_folder();
};

TEST_F(Kuairand, HasTheStandardLogsWithTheBitsOfNvidiasExamples) {
  write_logs("pure");
  write("data/video_features_basic_pure.csv",
        "video_id,author_id,video_type,tag\n7,70,NORMAL,\"1,8\"\n9,90,AD,\n");
  const Manifest manifest = prepare(kuairand_schema(folder_, "is_click"), folder_, folder_ / "ds");
  EXPECT_EQ(manifest.name, "kuairand-pure");
  EXPECT_EQ(manifest.counts,
            (EventCounts{.events = 3, .users = 2, .items = 3, .rankable = 3, .positives = 2}));
  const Dataset dataset(folder_ / "ds");
  EXPECT_EQ(dataset.item()[0], 7);
  EXPECT_EQ(dataset.item()[1], 8) << "events of one second are in the order of their milliseconds";
  EXPECT_EQ(dataset.item()[2], 9);
  EXPECT_EQ(dataset.action()[0], kRankableBit | 1 | 2 | 32);
  EXPECT_EQ(dataset.action()[1], kRankableBit);
  EXPECT_EQ(dataset.action()[2], kRankableBit | 1 | 64);
  EXPECT_EQ(manifest.attributes, std::vector<std::string>{"author_id"});
  EXPECT_EQ(manifest.context, std::vector<std::string>{"tab"});
}

TEST_F(Kuairand, ReadsTheTwoPartsOf27kAndNeedsNoVideos) {
  write_logs("27k", "_part1");
  write("data/log_standard_4_08_to_4_21_27k_part2.csv", kHeader + row(4, 6, kStart, "0,0,0,0,0,0,1", 0));
  const Manifest manifest = prepare(kuairand_schema(folder_, "long_view"), folder_, folder_ / "ds");
  EXPECT_EQ(manifest.counts.events, 4);
  EXPECT_EQ(manifest.counts.positives, 2);
  EXPECT_TRUE(manifest.attributes.empty());
}

TEST_F(Kuairand, SaysWhichFilesItExpects) {
  const auto refusal = [&]() -> std::string {
    try {
      kuairand_schema(folder_, "is_click");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal(), HasSubstr("log_standard_4_08_to_4_21_pure.csv"));
  write_logs("pure");
  write_logs("1k");
  EXPECT_THAT(refusal(), HasSubstr("pure and 1k"));
}

}  // namespace
}  // namespace hstu
