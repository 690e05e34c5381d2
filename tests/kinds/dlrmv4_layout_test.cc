#include "hstu/kinds/dlrmv4/dlrmv4_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/model/draws.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;

TEST(Dlrmv4Layout, PositionsCountFromTheCandidateIntoThePast) {
  // Two contextual tokens, three events, the candidate; five rows: the oldest share the last.
  std::vector<std::int32_t> rows;
  for (std::int64_t n = 0; n < 6; ++n) rows.push_back(position_row(n, 6, 2, 5));
  EXPECT_EQ(rows, (std::vector<std::int32_t>{0, 1, 4, 4, 3, 2}));
}

TEST(Dlrmv4Layout, TimeBucketsAreRootsOfMinutes) {
  EXPECT_EQ(time_bucket_row(1000, 1000, 2048), 0);
  EXPECT_EQ(time_bucket_row(1000, 2000, 2048), 0);  // the future counts as now
  EXPECT_EQ(time_bucket_row(60, 0, 2048), 1);
  EXPECT_EQ(time_bucket_row(59, 0, 2048), 0);
  EXPECT_EQ(time_bucket_row(60 * 100 * 100, 0, 2048), 100);
  EXPECT_EQ(time_bucket_row(60 * 100 * 100 - 1, 0, 2048), 99);
  EXPECT_EQ(time_bucket_row(26'000'000, 0, 2048), 658);
  EXPECT_EQ(time_bucket_row(900'000'000, 0, 2048), 2048);
}

TEST(Dlrmv4Layout, PlacesContextHistoryAndCandidate) {
  Samples samples;
  samples.count = 2;
  samples.history_offsets = {0, 2, 2};
  samples.history_item = {1, 0};
  samples.history_action = {4, 1};
  samples.history_time = {100, 200};
  samples.candidate_item = {0, 1};
  samples.candidate_time = {300, 400};
  samples.label = {1, 0};
  samples.user = {7, 8};
  samples.position = {50, 60};
  samples.items = {30, 31};
  samples.attributes = {{9, 9}};
  samples.context = {{3, 4}};
  Dlrmv4Config config;
  config.context = config.attributes = 1;
  config.time_buckets = 4;
  const SampleFeatures features({"item", 100}, {{"artist", 100}}, {{"user", 100}});
  LayoutScratch scratch;
  Batch batch;
  Dlrmv4Layout(config, features).lay_out(samples, scratch, batch);
  using Index = std::int32_t;
  EXPECT_THAT(batch.values<std::int64_t>(dlrmv4::kOffsets), ElementsAre(0, 4, 6));
  EXPECT_THAT(batch.values<Index>(dlrmv4::kContext), ElementsAre(0, -1, -1, -1, 1, -1));
  EXPECT_THAT(batch.values<Index>("item.index"), ElementsAre(-1, 1, 0, 0, -1, 1));
  EXPECT_THAT(batch.values<std::uint8_t>(dlrmv4::kActions), ElementsAre(1, 4));
  EXPECT_THAT(batch.values<Index>(dlrmv4::kAction), ElementsAre(-1, 1, 0, 2, -1, 2));
  EXPECT_THAT(batch.values<Index>(dlrmv4::kCandidate), ElementsAre(3, 5));
  EXPECT_THAT(batch.values<std::int64_t>(dlrmv4::kCandidateOffsets), ElementsAre(0, 1, 2));
  EXPECT_THAT(batch.values<Index>(dlrmv4::kCandidateItem), ElementsAre(0, 1));
  EXPECT_THAT(batch.values<Index>("candidate.artist"), ElementsAre(0, 0));
  EXPECT_THAT(batch.values<std::int64_t>(dlrmv4::kTokenName),
              ElementsAre(token_name(50, 0), token_name(50, 1), token_name(50, 2), token_name(50, 3),
                          token_name(60, 0), token_name(60, 1)));
  EXPECT_THAT(batch.values<std::int64_t>(dlrmv4::kCandidateName),
              ElementsAre(token_name(50, 3), token_name(60, 1)));
  EXPECT_EQ(batch.tokens, 6);
  EXPECT_EQ(batch.longest, 4);
  EXPECT_EQ(batch.values<std::int64_t>(kWorkColumn)[0], sequence_work(4, config));
}

TEST(Dlrmv4Layout, TheQueryIsTheCandidatesTimeOrTheLastEvents) {
  Samples samples;
  samples.count = 2;
  samples.history_offsets = {0, 1, 1};
  samples.history_item = {0};
  samples.history_action = {1};
  samples.history_time = {200};
  samples.candidate_item = {0, 0};
  samples.candidate_time = {200 + 3600 * 7, 400};
  samples.label = {1, 0};
  samples.user = samples.position = {0, 1};
  samples.items = {5};
  Dlrmv4Config config;
  const auto bucket_of_event = [&] {
    LayoutScratch scratch;
    Batch batch;
    Dlrmv4Layout(config, SampleFeatures({"item", 10})).lay_out(samples, scratch, batch);
    return batch.values<std::int32_t>(dlrmv4::kTimeBucket)[0];
  };
  EXPECT_EQ(bucket_of_event(), 20);  // the root of 420 minutes
  config.query_time =
      QueryTime::last_event;  // hides how long the user was away; falls back where there is no history
  EXPECT_EQ(bucket_of_event(), 0);
}

}  // namespace
}  // namespace hstu
