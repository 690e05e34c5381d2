#include "hstu/batching/features.h"

#include <array>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/dataset/user_split.h"

namespace hstu {
namespace {

using small::expect_error;

struct CrossVector {
  std::vector<std::int64_t> keys;
  std::uint64_t digest;
  std::int64_t rows, id;
};

// Digests and ids of the reference, computed by an independent XXH64.
TEST(ContextualFeatures, MatchTheReferencesCrossIds) {
  const std::vector<CrossVector> vectors{
      {{100, 17}, 0xf2855112649470f7, 100'000'000, 19788791},
      {{100, 42}, 0xb6fcb6b912ded2cf, 40'000'000, 35767503},
      {{100, 5}, 0x14fb8f5b46a465a9, 24'000'000, 6908329},
      {{3326, 5}, 0xbb5f050282c70905, 40'000'000, 22191877},
      {{17, 5}, 0x054187f7f892a1f0, 32'000'000, 20863472},
      {{100, 1}, 0xcd0ab2a4acf513f9, 2'000'000, 456697},
      {{100, 17, 5}, 0xeedf877d86f07d3f, 40'000'000, 37894463},
      {{1000000, 1293394}, 0xef383311bd677995, 100'000'000, 45709205},
      {{1000000, 3367691}, 0xb83bb5e40bd2e60c, 40'000'000, 20210700},
      {{1000000, 23}, 0x43b5684bd6e193d1, 24'000'000, 14744017},
      {{9390623, 23}, 0x6b6265005e0b6e77, 40'000'000, 28146295},
      {{1293394, 23}, 0xf27269417a547a82, 32'000'000, 5722754},
      {{1000000, 0}, 0x3de29b51a4fc02c5, 2'000'000, 847813},
      {{1000000, 1293394, 23}, 0xa2fb167ea8891464, 40'000'000, 27946596},
      {{0, 0}, 0xaf09f71516247c32, 100'000'000, 65648434},
      {{0, 0, 0}, 0xbb3302e8a9608868, 40'000'000, 2111592},
  };
  for (const CrossVector& v : vectors) {
    EXPECT_EQ(hash_keys(v.keys), v.digest);
    EXPECT_EQ(hashed_id(v.keys, v.rows), v.id);
  }
}

TEST(UserSplit, MatchesTheReferencesHash) {
  EXPECT_EQ(user_split_hash(0, 0), 0.8833108082136426);
  EXPECT_EQ(user_split_hash(1, 0), 0.5665615751722809);
  EXPECT_EQ(user_split_hash(100, 0), 0.13729259859359266);
  EXPECT_EQ(user_split_hash(1000000, 0), 0.4064500812937668);
  EXPECT_EQ(user_split_hash(100, 1), 0.8164412005984503);
}

TEST(ContextualFeatures, HourAndWeekdayAlsoBeforeTimeZero) {
  EXPECT_EQ(hour_of_day(0), 0);
  EXPECT_EQ(hour_of_day(86'399), 23);
  EXPECT_EQ(hour_of_day(86'400 + 3'600), 1);
  EXPECT_EQ(hour_of_day(-1), 23);
  EXPECT_EQ(weekday(0), 0);
  EXPECT_EQ(weekday(8 * 86'400), 1);
  EXPECT_EQ(weekday(-1), 6);
}

TEST(ContextualFeatures, ComputeEveryKeyOfTheCandidate) {
  const std::int64_t time = 9 * 86'400 + 5 * 3'600 + 59;
  const small::Data data =
      small::write({{.user = 1, .time = 1, .item = 2, .action = 0x81, .organic = 0},
                    {.user = 77, .time = time, .item = 13, .action = 0x81, .organic = 1}});
  const Dataset dataset(data.folder);
  const ContextualFeatures features(
      dataset, {{"user", {"user"}, 0, false},
                {"item", {"item"}, 0, false},
                {"hour", {"hour"}, 0, false},
                {"day", {"weekday"}, 0, false},
                {"artist", {"artist_id"}, 0, false},
                {"organic", {"is_organic"}, 0, false},
                {"user_hashed", {"user"}, 1000, true},
                {"user_x_album_x_hour", {"user", "album_id", "hour"}, 40'000'000, true}});
  const std::vector<std::int64_t> expected{
      77,
      13,
      5,
      2,
      data.artist[13],
      1,
      hashed_id(std::array<std::int64_t, 1>{77}, 1000),
      hashed_id(std::array<std::int64_t, 3>{77, data.album[13], 5}, 40'000'000)};
  ASSERT_EQ(features.size(), expected.size());
  const Candidate anchor{.name = 1, .user = 77, .item = 13, .time = time};
  const std::vector<std::int64_t> context{1};
  const Candidate request{.is_anchor = false, .user = 77, .item = 13, .time = time, .context = context};
  for (std::size_t f = 0; f < expected.size(); ++f) {
    EXPECT_EQ(features.value(f, anchor), expected[f]) << f;
    EXPECT_EQ(features.value(f, request), expected[f]) << f;
  }
}

TEST(ContextualFeatures, RefuseWhatMakesNoId) {
  const small::Data data = small::write({{.user = 1, .time = 1, .item = 2, .action = 0x81}});
  const Dataset dataset(data.folder);
  const auto make = [&](const ContextualFeature& feature) {
    return [&dataset, feature] { ContextualFeatures(dataset, {feature}); };
  };
  expect_error<UsageError>(make({"cross", {"user", "artist"}, 10, true}),
                           {"cross", "\"artist\"", "artist_id"});
  expect_error<UsageError>(make({"cross", {"user", "hour"}, 10, false}), {"cross", "hashed = true"});
  expect_error<UsageError>(make({"cross", {"user", "hour"}, 0, true}), {"cross", "rows"});
  expect_error<UsageError>(make({"cross", {}, 10, true}), {"cross", "keys"});
}

}  // namespace
}  // namespace hstu
