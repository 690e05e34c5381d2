#include "hstu/model/token_layout.h"

#include <gtest/gtest.h>

#include "support/tensor_values.h"

namespace hstu {
namespace {

TEST(TokenLayout, PositionsCountFromTheCandidateIntoThePast) {
  // Two contextual tokens, three events, the candidate; five rows: the oldest share the last.
  std::vector<std::int32_t> rows;
  for (std::int64_t n = 0; n < 6; ++n) rows.push_back(position_row(n, 6, 2, 5));
  EXPECT_EQ(rows, (std::vector<std::int32_t>{0, 1, 4, 4, 3, 2}));
}

TEST(TokenLayout, TimeBucketsAreRootsOfMinutes) {
  EXPECT_EQ(time_bucket_row(1000, 1000, 2048), 0);
  EXPECT_EQ(time_bucket_row(1000, 2000, 2048), 0);  // the future counts as now
  EXPECT_EQ(time_bucket_row(60, 0, 2048), 1);
  EXPECT_EQ(time_bucket_row(59, 0, 2048), 0);
  EXPECT_EQ(time_bucket_row(60 * 100 * 100, 0, 2048), 100);
  EXPECT_EQ(time_bucket_row(60 * 100 * 100 - 1, 0, 2048), 99);
  EXPECT_EQ(time_bucket_row(26'000'000, 0, 2048), 658);
  EXPECT_EQ(time_bucket_row(900'000'000, 0, 2048), 2048);
}

TEST(TokenLayout, PlacesContextHistoryAndCandidate) {
  Batch batch;
  batch.samples = 2;
  batch.history_offsets = {0, 2, 2};
  batch.history_item = {1, 0};
  batch.history_action = {4, 1};
  batch.history_time = {100, 200};
  batch.candidate_item = {0, 1};
  batch.candidate_time = {300, 400};
  ModelConfig config;
  config.context = 1;
  const TokenLayout layout = token_layout(batch, config);
  EXPECT_EQ(layout.offsets, (std::vector<std::int64_t>{0, 4, 6}));
  EXPECT_EQ(testing::values_of<std::int32_t>(layout.context),
            (std::vector<std::int32_t>{0, -1, -1, -1, 1, -1}));
  EXPECT_EQ(testing::values_of<std::int32_t>(layout.item), (std::vector<std::int32_t>{-1, 1, 0, 0, -1, 1}));
  EXPECT_EQ(layout.actions, (std::vector<std::uint8_t>{1, 4}));
  EXPECT_EQ(testing::values_of<std::int32_t>(layout.action), (std::vector<std::int32_t>{-1, 1, 0, 2, -1, 2}));
  EXPECT_EQ(testing::values_of<std::int32_t>(layout.candidate), (std::vector<std::int32_t>{3, 5}));
  EXPECT_EQ(layout.query_time, (std::vector<std::int64_t>{300, 400}));
  config.query_time = "last_event";  // falls back to the candidate where the history is empty
  EXPECT_EQ(token_layout(batch, config).query_time, (std::vector<std::int64_t>{200, 400}));
}

}  // namespace
}  // namespace hstu
