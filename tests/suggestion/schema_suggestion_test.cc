// A suggested schema is one that prepare accepts, and one that a person would have written for a typical log.
#include "hstu/suggestion/schema_suggestion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/parquet_files.h"
#include "hstu/base/error.h"
#include "hstu/prepare/prepare.h"
#include "hstu/prepare/suggestion.h"
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
  EXPECT_THAT(text_, HasSubstr("numbers with fractions, each of which would be one category"));
  const Manifest manifest = prepare(schema, folder_, folder_ / "ds");
  EXPECT_EQ(manifest.counts.events, kRows);
  EXPECT_EQ(manifest.counts.positives, kRows / 4);
}

TEST_F(Suggestion, KeepsTheNamesOfItemsThatAreTexts) {
  std::string text = "visitor,sku,when,tags\n";
  for (int i = 0; i < kRows; ++i)
    text += fmt::format("{},p-{},2023-11-14T12:{:02}:00,c{}|k{}\n", i / 12, i % 37, i % 60, i % 7, i % 5);
  write_file(folder_ / "events.csv", text);
  text_ = suggest_schema({folder_ / "events.csv"});
  EXPECT_THAT(text_, HasSubstr("lists with |, each of which would be one category"));
  write_file(folder_ / "schema.toml", text_);
  const Schema schema = read_schema(folder_ / "schema.toml");
  EXPECT_EQ(schema.keep_names, std::vector<std::string>{"item"});
  prepare(schema, folder_, folder_ / "ds");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "ds" / "names_item.txt") ||
              std::filesystem::exists(folder_ / "ds" / "names_item_ids.npy"));
}

TEST_F(Suggestion, ShowsLargeIntegersWithAllDigits) {
  suggested({{"user", kUsers},
             {"item", kItems},
             {"time", kMilliseconds},
             {"key", numbers([](int i) { return std::int64_t{9'223'372'036'854'775'807} - i; })}});
  EXPECT_THAT(text_, HasSubstr("# key: int64, 9223372036854775688 to 9223372036854775807 (120 distinct)"));
}

TEST_F(Suggestion, NamesTheColumnsOfFoldersAndBytesThatMayBeTexts) {
  arrow::BinaryBuilder bytes;
  for (int i = 0; i < kRows; ++i) ASSERT_TRUE(bytes.Append("view").ok());
  const Array kinds = bytes.Finish().ValueOrDie();
  for (const char* day : {"day=2024-05-01", "day=2024-05-02"}) {
    std::filesystem::create_directories(folder_ / "log" / day);
    write_parquet(folder_ / "log" / day / "part.parquet",
                  {{"user", kUsers}, {"item", kItems}, {"time", kMilliseconds}, {"kind", kinds}});
  }
  write_suggestion({folder_ / "log"}, folder_ / "schema.toml");
  EXPECT_THAT(read_file(folder_ / "schema.toml"),
              AllOf(HasSubstr("files = [\"day=*/part.parquet\"]"),
                    HasSubstr("# kind: binary, which hstu reads as texts if they are UTF-8"),
                    HasSubstr("# day: folders, 2024-05-01 in the first: a column of texts")));
  const Schema schema = read_schema(folder_ / "schema.toml");
  EXPECT_EQ(prepare(schema, folder_ / "log", folder_ / "ds").counts.events, 2 * kRows);
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

TEST_F(Suggestion, SaysWhichRoleNoColumnHas) {
  const auto guess = [&](const NamedArrays& columns) {
    write_parquet(folder_ / "events.parquet", columns);
    text_ = suggest_schema({folder_ / "events.parquet"});
    write_file(folder_ / "schema.toml", text_);
    try {
      read_schema(folder_ / "schema.toml");
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(guess({{"user", kUsers}, {"item", kItems}, {"w", words([](int) { return "x"; })}}),
              HasSubstr("time: expected the name of a column"));
  EXPECT_THAT(text_, AllOf(HasSubstr("# NO COLUMN LOOKS LIKE THE TIME"), HasSubstr("user = \"user\""),
                           HasSubstr("# w: dictionary<")));
  EXPECT_THAT(guess({{"user", kUsers}, {"at", kMilliseconds}}),
              HasSubstr("item: expected the name of a column"));
  EXPECT_THAT(text_, AllOf(HasSubstr("# NO COLUMN LOOKS LIKE THE ITEM"), HasSubstr("time = \"at\"")));
}

// A CSV file as text, the schema that is suggested for it and the dataset that it gives.
class CsvSuggestion : public Suggestion {
 protected:
  Schema suggested_csv(const std::string& text, const std::string& name = "events.csv") {
    write_file(folder_ / name, text);
    text_ = suggest_schema({folder_ / name});
    write_file(folder_ / "schema.toml", text_);
    Schema schema = read_schema(folder_ / "schema.toml");
    manifest_ = prepare(schema, folder_, folder_ / "ds");
    return schema;
  }
  std::string rows(const std::string& header, std::string (*row)(int)) const {
    std::string text = header + "\n";
    for (int i = 0; i < kRows; ++i) text += row(i) + "\n";
    return text;
  }
};

TEST_F(CsvSuggestion, KeepsLeadingZeros) {
  const Schema schema = suggested_csv(rows("user_id,parent_asin,rating,timestamp", [](int i) {
    return fmt::format("{},{:010},{}.0,{}", 100 + i % 7, 138'000 + i, 1 + i % 5, 1'387'670'400'000 + i);
  }));
  EXPECT_EQ(schema.csv->integers, std::vector<std::string>{"user_id"});
  EXPECT_EQ(schema.item, "parent_asin");
  EXPECT_TRUE(manifest_.hashed.contains("item"));
}

TEST_F(CsvSuggestion, TakesTimesInUtcBeforeLongIds) {
  const Schema schema = suggested_csv(
      rows("event_time,event_type,product_id,category_id,price,user_id,user_session", [](int i) {
        return fmt::format("2019-10-01 00:00:{:02} UTC,{},{},{},{}.79,{},s{}", i % 60,
                           i % 3 == 0 ? "cart" : "view", 10'000'000 + i % 37,
                           2'103'807'459'595'387'724 + i % 3, i, 500'000'000 + i / 9, i / 4);
      }));
  EXPECT_EQ(schema.time, "event_time");
  EXPECT_EQ(schema.user, "user_id");
  EXPECT_EQ(schema.item, "product_id");
  EXPECT_EQ(manifest_.counts.events, kRows);
}

TEST_F(CsvSuggestion, TakesNoRatingForAUser) {
  const auto log = [](int i) {
    return fmt::format("{},{},{},{}", 1 + i % 5, i / 12, i % 37, 1'700'000'000 + i);
  };
  Schema schema = suggested_csv(rows("user_rating,a,b,timestamp", log));
  EXPECT_EQ(schema.user, "a");  // many values, as ids have
  EXPECT_EQ(schema.item, "b");
  EXPECT_EQ(schema.label, "positive");
  std::filesystem::remove_all(folder_ / "ds");
  schema = suggested_csv(rows("overall,reviewerID,asin,unixReviewTime", log));
  EXPECT_EQ(schema.user, "reviewerID");
  EXPECT_EQ(schema.item, "asin");
}

TEST(SchemaSuggestion, TakesAColumnForOneRoleOnly) {
  const Path file = temporary_folder() / "log.csv";
  write_file(file, "stars,product,time\n5,a,1700000000\n4,b,1700000001\n5,c,1700000002\n");
  EXPECT_THAT(suggest_schema({file}), AllOf(HasSubstr("\nuser = \"\""), HasSubstr("\nitem = \"product\"")));
  write_file(file, "user,item\n1,2\n1,3\n");
  EXPECT_THAT(suggest_schema({file}),
              AllOf(HasSubstr("\nuser = \"user\""), HasSubstr("\nlabel = \"event\"")));
}

TEST_F(CsvSuggestion, GuessesFromUnusualNames) {
  const auto log = [](int i) {
    return fmt::format("p{};{};{};{}", i / 12, i % 37, i % 4 == 0 ? "yes" : "no", 1'700'000'000 + i);
  };
  Schema schema = suggested_csv(rows("who;what;verdict;at", log), "log.txt");
  EXPECT_EQ(schema.user, "who");
  EXPECT_EQ(schema.item, "what");
  EXPECT_EQ(schema.time, "at");
  EXPECT_EQ(schema.actions.size(), 2);
  EXPECT_EQ(schema.csv->delimiter, ';');
  std::filesystem::remove_all(folder_ / "ds");
  schema = suggested_csv(rows("x;y;z;t", log), "log.txt");
  EXPECT_EQ(schema.user, "y");  // integers before texts
  EXPECT_EQ(schema.item, "x");
  EXPECT_EQ(schema.label, "yes");
  EXPECT_THAT(text_, HasSubstr("no name says so: the first column of texts"));
}

TEST_F(CsvSuggestion, FindsStrayQuotesAndWordsForNull) {
  const Schema schema = suggested_csv(rows("user,item,kind,time", [](int i) {
    return fmt::format("{},{},{},{}", i % 9 == 0 ? "\\N" : std::to_string(i / 12),
                       i % 7 == 0 ? "\"Live" : fmt::format("i{}", i % 37), i % 4 == 0 ? "buy" : "view",
                       1'700'000'000 + i);
  }));
  EXPECT_EQ(schema.csv->quote, std::nullopt);
  EXPECT_EQ(schema.nulls, std::vector<std::string>{"\\N"});
  EXPECT_EQ(schema.drop_null, std::vector<std::string>{"user"});
  EXPECT_EQ(schema.csv->integers, std::vector<std::string>{"user"});
  EXPECT_EQ(manifest_.counts.events, kRows - (kRows + 8) / 9);
}

}  // namespace
}  // namespace hstu
