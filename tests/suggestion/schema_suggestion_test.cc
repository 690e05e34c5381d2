// A suggested schema is one that prepare accepts, and one that a person would have written for a typical log.
#include "hstu/suggestion/schema_suggestion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/parquet_files.h"
#include "hstu/base/error.h"
#include "hstu/prepare/prepare.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kRows = 120;

Array numbers(std::int64_t (*value)(int)) {
  std::vector<std::optional<std::int64_t>> values;
  values.reserve(kRows);
  for (int i = 0; i < kRows; ++i) values.push_back(value(i));
  return array<arrow::Int64Type>(values);
}

Array words(const char* (*value)(int)) {
  std::vector<std::optional<std::string>> values;
  values.reserve(kRows);
  for (int i = 0; i < kRows; ++i) values.push_back(value(i));
  return texts(values);
}

const Array kUsers = numbers([](int i) { return std::int64_t{i / 12}; });
const Array kItems = numbers([](int i) { return std::int64_t{i * i % 37}; });
const Array kMilliseconds = numbers([](int i) { return std::int64_t{1'700'000'000'000} + i * 60'000; });

class Suggestion : public testing::Test {
 protected:
  // The schema that is suggested for a log of these columns, as text and as read; prepare accepts it.
  Schema suggested(const NamedArrays& columns) {
    write_parquet(folder_ / "events.parquet", columns);
    text_ = suggest_schema({folder_ / "events.parquet"});
    write_file(folder_ / "schema.toml", text_);
    Schema schema = read_schema(folder_ / "schema.toml");
    manifest_ = prepare(schema, folder_, folder_ / "ds");
    EXPECT_EQ(manifest_.counts.events, kRows);
    return schema;
  }
  const Path folder_ = temporary_folder();
  std::string text_;
  Manifest manifest_;
};

TEST_F(Suggestion, TakesTheTextsOfAnEventTypeAsActions) {
  const Schema schema =
      suggested({{"event_time", kMilliseconds},
                 {"session", kItems},
                 {"productId", kItems},
                 {"user_age", numbers([](int i) { return std::int64_t{20 + i / 12}; })},
                 {"customer_id", kUsers},
                 {"event_type", words([](int i) { return i % 10 == 0 ? "purchase" : "add to cart"; })}});
  EXPECT_EQ(schema.user, "customer_id");
  EXPECT_EQ(schema.item, "productId");
  EXPECT_EQ(schema.time, "event_time");
  EXPECT_EQ(schema.time_unit, TimeUnit::kMilliseconds);
  EXPECT_EQ(schema.label, "purchase");
  EXPECT_EQ(schema.pools, (std::vector<std::string>{"purchase", "add_to_cart"}));
  EXPECT_EQ(manifest_.counts.positives, kRows / 10);
  EXPECT_THAT(text_,
              AllOf(HasSubstr("in \"ms\" its last value is of the year 2023"),
                    HasSubstr("# user_age: int64, 20 to 29 (10 distinct)"), HasSubstr("# session: int64")));
}

TEST_F(Suggestion, TakesColumnsOfZeroAndOneAsActions) {
  const Schema schema = suggested({{"uid", kUsers},
                                   {"video_id", kItems},
                                   {"date", numbers([](int) { return std::int64_t{20220408}; })},
                                   {"time_ms", kMilliseconds},
                                   {"is_hate", numbers([](int i) { return std::int64_t{i % 9 == 0}; })},
                                   {"is_click", numbers([](int i) { return std::int64_t{i % 3 == 0}; })}});
  EXPECT_EQ(schema.user, "uid");
  EXPECT_EQ(schema.item, "video_id");
  EXPECT_EQ(schema.time, "time_ms");
  EXPECT_EQ(schema.label, "is_click");
  EXPECT_EQ(schema.pools, (std::vector<std::string>{"is_click", "is_hate", "seen"}));
  EXPECT_EQ(manifest_.counts.positives, kRows / 3);
}

TEST_F(Suggestion, TakesHighRatingsAsPositives) {
  const Schema schema =
      suggested({{"userId", kUsers},
                 {"movieId", kItems},
                 {"rating", numbers([](int i) { return std::int64_t{1 + i % 5}; })},
                 {"timestamp", timestamps(arrow::TimeUnit::MICRO, std::vector<std::optional<std::int64_t>>(
                                                                      kRows, 1'700'000'000'000'000))}});
  EXPECT_EQ(schema.time, "timestamp");
  EXPECT_EQ(schema.label, "positive");
  EXPECT_EQ(to_string(schema.actions[0].when[0]), "rating >= 4");
  EXPECT_EQ(manifest_.counts.positives, kRows * 2 / 5);
}

TEST_F(Suggestion, SaysThatALogWithoutActionsTrainsNothing) {
  const Schema schema = suggested({{"u", kUsers}, {"i", kItems}, {"t", kMilliseconds}});
  EXPECT_EQ(schema.label, "event");
  EXPECT_THAT(text_, HasSubstr("else hstu draws some"));
}

TEST_F(Suggestion, GuessesTheTypesOfCsvFromTheirValues) {
  std::string text = "visitor,sku,when,kind,price\n";
  for (int i = 0; i < kRows; ++i) {
    text += fmt::format("u-{},{},2023-11-14T12:{:02}:00,{},{}.5\n", i / 12, i % 37, i % 60,
                        i % 4 == 0 ? "buy" : "view", i);
  }
  write_file(folder_ / "events.csv", text);
  text_ = suggest_schema({folder_ / "events.csv"});
  write_file(folder_ / "schema.toml", text_);
  const Schema schema = read_schema(folder_ / "schema.toml");
  EXPECT_EQ(schema.user, "visitor");
  EXPECT_EQ(schema.item, "sku");
  EXPECT_EQ(schema.time, "when");
  EXPECT_EQ(schema.csv->integers, std::vector<std::string>{"sku"});
  EXPECT_EQ(schema.label, "buy");
  const Manifest manifest = prepare(schema, folder_, folder_ / "ds");
  EXPECT_EQ(manifest.counts.events, kRows);
  EXPECT_EQ(manifest.counts.positives, kRows / 4);
}

TEST_F(Suggestion, ReadsItsNamesWhateverTheyContain) {
  const Schema schema = suggested({{"user \"id\"", kUsers},
                                   {"item='x'", kItems},
                                   {"time\n", kMilliseconds},
                                   {"event_type", words([](int i) { return i % 2 == 0 ? "a=b" : "'q"; })}});
  EXPECT_EQ(schema.user, "user \"id\"");
  EXPECT_EQ(schema.item, "item='x'");
  EXPECT_EQ(manifest_.counts.positives, kRows / 2);
}

TEST_F(Suggestion, NamesTheColumnsWhenOneIsMissing) {
  const auto refusal = [&](const NamedArrays& columns) -> std::string {
    write_parquet(folder_ / "events.parquet", columns);
    try {
      suggest_schema({folder_ / "events.parquet"});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal({{"user", kUsers}, {"item", kItems}, {"w", words([](int) { return "x"; })}}),
              AllOf(HasSubstr("events.parquet: no column can be the time"), HasSubstr("w (dictionary<")));
  EXPECT_THAT(refusal({{"user", kUsers}, {"at", kMilliseconds}}), HasSubstr("no column can be the item"));
}

}  // namespace
}  // namespace hstu
