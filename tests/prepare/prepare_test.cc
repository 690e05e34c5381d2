#include "hstu/prepare/prepare.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/parquet_files.h"
#include "events/yambda_log.h"
#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/events/builtin_schemas.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

constexpr SplitRule kKeepAll{.test_days = 0};
constexpr std::uint8_t kPlus = 1, kLiked = 2, kSkip = 4;

template <typename T>
std::vector<std::int64_t> column(const Path& file) {
  const NpyColumn<T> values(file);
  return {values.values().begin(), values.values().end()};
}

using Integers = std::vector<std::int64_t>;

TEST(PrepareYambda, GivesEveryEventItsActionBits) {
  const Path input = temporary_folder();
  write_yambda(input, {{1, 10, 1, "listen", 50, 1},
                       {1, 15, 2, "listen", 49, 0},
                       {1, 20, 3, "listen", std::nullopt, 1},  // a null ratio counts as 0: a skip
                       {1, 25, 4, "listen", 130, 1},
                       {1, 30, 5, "like"},
                       {1, 35, 5, "unlike"},
                       {1, 40, 6, "dislike"},
                       {1, 45, 6, "undislike"}});
  const Manifest manifest = prepare(yambda_schema(input, kKeepAll), input, input / "ds");
  EXPECT_EQ(column<std::uint8_t>(input / "ds" / kActionFile),
            (Integers{kRankableBit | kPlus, kRankableBit | kSkip, kRankableBit | kSkip, kRankableBit | kPlus,
                      kLiked, 0, 0, 0}));
  EXPECT_EQ(column<std::uint8_t>(input / "ds" / context_file("is_organic")),
            (Integers{1, 0, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(manifest.counts,
            (EventCounts{.events = 8, .users = 1, .items = 6, .rankable = 4, .positives = 2}));
  EXPECT_EQ(manifest.split, std::nullopt);
  EXPECT_EQ(manifest.test_events, std::nullopt);
  EXPECT_EQ(manifest.pool_bits(), kPlus | kLiked | kSkip);
  EXPECT_EQ(read_manifest(input / "ds"), manifest);
}

TEST(PrepareYambda, TakesTheLastMappingRowOfAnItemAndZeroForUnmappedOnes) {
  const Path input = temporary_folder();
  write_yambda(input, {{1, 10, 1, "like"}});
  prepare(yambda_schema(input, kKeepAll), input, input / "ds");
  EXPECT_EQ(column<std::uint32_t>(input / "ds" / attribute_file("artist_id")),
            (Integers{0, 73, 72, 0, 74, 0, 0}));
  EXPECT_EQ(column<std::uint32_t>(input / "ds" / attribute_file("album_id")),
            (Integers{0, 0, 0, 0, 0, 0, 81}));
}

TEST(PrepareYambda, HoldsOutTheTestDayAndTheGap) {
  const Path input = temporary_folder();
  const std::int64_t last = 26'000'000;
  const std::int64_t test_start = last - 86'400, train_end = test_start - 1'800;
  write_yambda(input, {{100, 0, 1, "listen", 80},
                       {100, train_end - 5, 2, "listen", 10},
                       {100, train_end, 3, "listen", 80},
                       {100, test_start, 4, "listen", 80},
                       {100, last, 5, "listen", 80},
                       {200, test_start + 5, 6, "listen", 80}});
  const Manifest manifest = prepare(yambda_schema(input, SplitRule{}), input, input / "ds");
  EXPECT_EQ(column<std::uint32_t>(input / "ds" / kItemFile), (Integers{1, 2}));
  EXPECT_EQ(manifest.time, (TimeRange{.min = 0, .max = train_end - 5}));
  ASSERT_TRUE(manifest.split.has_value());
  EXPECT_EQ(manifest.split->train_end, 25'911'800);
  ASSERT_TRUE(manifest.test_events.has_value());
  EXPECT_EQ(*manifest.test_events,
            (EventCounts{.events = 1, .users = 1, .items = 1, .rankable = 1, .positives = 1}));
}

TEST(PrepareYambda, KeepsEveryEventWithoutTestDays) {
  const Path input = temporary_folder();
  write_yambda(input, {{1, 0, 1, "like"}, {1, 26'000'000, 2, "like"}});
  EXPECT_EQ(prepare(yambda_schema(input, kKeepAll), input, input / "ds").counts.events, 2);
}

TEST(PrepareYambda, SortsUnsortedInputLikeSortedInput) {
  const Path input = temporary_folder();
  for (const char* name : {"sorted", "unsorted"}) std::filesystem::create_directories(input / name);
  const std::vector<YambdaEvent> sorted = {
      {1, 10, 4, "listen", 80}, {1, 20, 3, "like"}, {1, 20, 2, "listen", 5}, {7, 5, 1, "listen", 60}};
  write_yambda(input / "sorted", sorted);
  write_yambda(input / "unsorted",
               {sorted[3], sorted[1], sorted[2], sorted[0]});  // ties keep the log's order
  const auto id = [&](const char* name) {
    return prepare(yambda_schema(input / name, kKeepAll), input / name, input / name / "ds").id;
  };
  EXPECT_EQ(id("unsorted"), id("sorted"));
}

TEST(PrepareYambda, FindsTheMappingsWhereThePublishedLayoutsKeepThem) {
  const Path root = temporary_folder();
  std::filesystem::create_directories(root / "raw/50m");
  std::filesystem::create_directories(root / "shared_metadata");
  EXPECT_THROW(find_yambda_mappings(root / "raw/50m"), UsageError);
  write_mappings(root / "shared_metadata");
  EXPECT_TRUE(std::filesystem::equivalent(find_yambda_mappings(root / "raw/50m"), root / "shared_metadata"));
}

TEST(PrepareParquet, ReadsManyFilesByAUsersSchema) {
  const Path input = temporary_folder() / "log [2024]";  // characters that patterns would take for their own
  std::filesystem::create_directories(input);
  const auto write_part = [&](const char* name, std::int64_t item) {
    write_parquet(input / name,
                  {{"customer", array<arrow::Int64Type>({5, 4})},
                   {"product", array<arrow::Int16Type>({static_cast<std::int16_t>(item), 2})},
                   {"at", array<arrow::Int64Type>({-1, 2999})},
                   {"kind", texts({"purchase", "view"})},
                   {"dwell", array<arrow::FloatType>({std::nullopt, 7.5f})},
                   {"brand_id", array<arrow::Int32Type>({std::nullopt, static_cast<int>(item)})},
                   {"device", array<arrow::Int32Type>({1, 70'000})}});
  };
  write_part("part-1.parquet", 8);
  write_part("part-2.parquet", 9);
  write_file(input / "shop.toml", R"(
name = "shop"
files = ["part-*.parquet"]
user = "customer"
item = "product"
time = "at"
time_unit = "ms"
label = "bought"
pools = ["bought"]
rankable = ["kind = view"]
null_as_zero = ["dwell"]
[[action]]
name = "bought"
bit = 1
when = ["kind = purchase"]
[[action]]
name = "long_view"
bit = 64
when = ["kind = view", "dwell >= 7.5"]
[[attribute]]
name = "brand"
column = "brand_id"
[[context]]
name = "device"
)");
  const Path output = input / "ds";
  const Manifest manifest = prepare(read_schema(input / "shop.toml"), input, output);
  EXPECT_EQ(manifest.name, "shop");
  EXPECT_EQ(column<std::int64_t>(output / kUserIdsFile), (Integers{4, 5}));
  EXPECT_EQ(column<std::uint32_t>(output / kItemFile), (Integers{2, 2, 8, 9}));
  EXPECT_EQ(column<std::int64_t>(output / kTimestampFile), (Integers{2, 2, -1, -1}));  // rounded down
  EXPECT_EQ(column<std::uint8_t>(output / kActionFile),
            (Integers{kRankableBit | 64, kRankableBit | 64, 1, 1}));
  EXPECT_EQ(column<std::uint32_t>(output / context_file("device")), (Integers{70'000, 70'000, 1, 1}));
  EXPECT_EQ(column<std::uint32_t>(output / attribute_file("brand")),
            (Integers{0, 0, 9, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(PrepareMovieLens, ReadsMovieLens100K) {
  const char* const data = std::getenv("HSTU_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "set HSTU_TEST_DATA to a folder that contains ml-100k/";
  const Path input = Path(data) / "ml-100k";
  const Path output = temporary_folder() / "ds";
  const Manifest manifest = prepare(movielens_schema(input, 4), input, output);
  EXPECT_EQ(manifest.counts,
            (EventCounts{
                .events = 100'000, .users = 943, .items = 1682, .rankable = 100'000, .positives = 55'375}));
  EXPECT_EQ(manifest.time, (TimeRange{.min = 874'724'710, .max = 893'286'638}));
  EXPECT_EQ(column<std::uint32_t>(output / attribute_file("year")).at(1), 1995);
}

TEST(PrepareMovieLens, OrsLovedAndHatedOntoPositiveAndNegative) {
  const Path input = temporary_folder();
  write_file(input / "ratings.csv",
             "userId,movieId,rating,timestamp\n1,1,5.0,1\n1,2,4.0,2\n1,3,3.5,3\n1,4,2.0,4\n");
  prepare(movielens_schema(input, 4), input, input / "four");
  EXPECT_EQ(column<std::uint8_t>(input / "four" / kActionFile),
            (Integers{kRankableBit | 1 | 4, kRankableBit | 1, kRankableBit | 2, kRankableBit | 2 | 8}));
  const Manifest lenient = prepare(movielens_schema(input, 3.5), input, input / "lenient");
  EXPECT_EQ(lenient.counts.positives, 3);
  EXPECT_TRUE(lenient.attributes.empty());  // there is no movies.csv
}

}  // namespace
}  // namespace hstu
