// Bad input gets a clear error and leaves no dataset.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/parquet_files.h"
#include "events/yambda_log.h"
#include "hstu/base/error.h"
#include "hstu/events/builtin_schemas.h"
#include "hstu/prepare/prepare.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class BadInput : public testing::Test {
 protected:
  BadInput() : input_(temporary_folder()) { write_yambda(input_, events_); }

  Path log() const { return input_ / "multi_event.parquet"; }

  // Writes the log with one column replaced, under the name `renamed`.
  void replace(const std::string& name, const Array& values, const std::string& renamed = "") {
    NamedArrays columns = yambda_columns(events_);
    const auto found =
        std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.first == name; });
    *found = {renamed.empty() ? name : renamed, values};
    write_parquet(log(), columns);
  }

  // The message of the error that preparing the input gives; "" when there is none.
  template <typename ErrorType>
  std::string message_of() {
    std::string message;
    try {
      prepare(yambda_schema(input_, SplitRule{.test_days = 0}), input_, input_ / "ds");
    } catch (const ErrorType& error) {
      message = error.what();
    }
    if (!message.empty()) {
      EXPECT_FALSE(std::filesystem::exists(input_ / "ds"));
      EXPECT_FALSE(std::filesystem::exists(input_ / "ds.partial"));
    }
    return message;
  }

  const std::vector<YambdaEvent> events_ = {
      {1, 10, 1, "listen", 50, 1}, {1, 15, 2, "like"}, {2, 15, 2, "like"}};
  Path input_;
};

TEST_F(BadInput, IsNotFoundInGoodInput) {
  EXPECT_EQ(message_of<std::exception>(), "");
  EXPECT_TRUE(std::filesystem::exists(input_ / "ds" / kManifestFile));
}

TEST_F(BadInput, MissingFile) {
  std::filesystem::remove(log());
  EXPECT_THAT(message_of<UsageError>(),
              AllOf(HasSubstr("multi_event.parquet"), HasSubstr("the file does not exist")));
}

TEST_F(BadInput, MissingMapping) {
  std::filesystem::remove(input_ / "album_item_mapping.parquet");
  EXPECT_THAT(message_of<UsageError>(),
              AllOf(HasSubstr("album_item_mapping.parquet"), HasSubstr("the file does not exist")));
}

TEST_F(BadInput, ParquetTruncatedAnywhere) {
  const auto size = std::filesystem::file_size(log());
  for (const std::uintmax_t left : {std::uintmax_t{0}, std::uintmax_t{3}, size / 2, size - 1}) {
    write_yambda(input_, events_);
    std::filesystem::resize_file(log(), left);
    EXPECT_THAT(message_of<Error>(), AllOf(HasSubstr("multi_event.parquet"), HasSubstr("truncated"))) << left;
  }
}

TEST_F(BadInput, ParquetWithDamagedPages) {
  std::string bytes = read_file(log());
  std::fill(bytes.begin() + 4, bytes.begin() + 200, '\xff');
  write_file(log(), bytes);
  EXPECT_THAT(message_of<Error>(), HasSubstr("multi_event.parquet"));
}

TEST_F(BadInput, MissingColumnSuggestsTheNearest) {
  replace("item_id", array<arrow::UInt32Type>({1, 2, 3}), "itemid");
  EXPECT_THAT(message_of<UsageError>(),
              AllOf(HasSubstr("multi_event.parquet: the column \"item_id\" does not exist"),
                    HasSubstr("did you mean \"itemid\"?")));
}

TEST_F(BadInput, WrongColumnTypeNamesWhatWasExpectedAndFound) {
  replace("uid", array<arrow::DoubleType>({1, 2.5, 3}));
  EXPECT_THAT(message_of<Error>(), AllOf(HasSubstr("column \"uid\": row 1"), HasSubstr("expected an integer"),
                                         HasSubstr("found 2.5 (the column has the type double)")));
  replace("timestamp", texts({"a", "b", "c"}));
  EXPECT_THAT(message_of<Error>(), AllOf(HasSubstr("column \"timestamp\": row 0"), HasSubstr("found \"a\"")));
  replace("event_type", array<arrow::UInt8Type>({1, 2, 3}));
  EXPECT_THAT(message_of<UsageError>(),
              AllOf(HasSubstr("column \"event_type\""), HasSubstr("expected strings")));
  replace("played_ratio_pct", texts({"a", "b", "c"}));
  EXPECT_THAT(message_of<UsageError>(), AllOf(HasSubstr("\"played_ratio_pct\""), HasSubstr("contains text")));
}

TEST_F(BadInput, EmptyLog) {
  write_parquet(log(), yambda_columns({}));
  EXPECT_THAT(message_of<Error>(), AllOf(HasSubstr("no events"), HasSubstr("multi_event.parquet")));
}

TEST_F(BadInput, NegativeIds) {
  replace("uid", array<arrow::Int64Type>({1, -2, 3}));
  EXPECT_THAT(message_of<Error>(), AllOf(HasSubstr("column \"uid\": row 1"), HasSubstr("found -2")));
  replace("item_id", array<arrow::Int32Type>({1, 2, -3}));
  EXPECT_THAT(message_of<Error>(), AllOf(HasSubstr("column \"item_id\": row 2"), HasSubstr("found -3")));
  write_yambda(input_, events_);
  write_parquet(input_ / "album_item_mapping.parquet",
                {{"album_id", array<arrow::Int32Type>({-1})}, {"item_id", array<arrow::Int32Type>({1})}});
  EXPECT_THAT(message_of<Error>(), AllOf(HasSubstr("album_item_mapping.parquet"), HasSubstr("found -1")));
}

TEST_F(BadInput, UnknownEventType) {
  replace("event_type", dictionary({"listen", "like", "share"}));
  EXPECT_THAT(message_of<Error>(), AllOf(HasSubstr("column \"event_type\": row 2"), HasSubstr("undislike"),
                                         HasSubstr("found \"share\"")));
}

TEST_F(BadInput, NullWhereNoneMayBe) {
  replace("timestamp", array<arrow::UInt32Type>({1, std::nullopt, 3}));
  EXPECT_THAT(message_of<Error>(), AllOf(HasSubstr("column \"timestamp\": row 1"), HasSubstr("found null")));
  replace("event_type", dictionary({"listen", "like", std::nullopt}));
  EXPECT_THAT(message_of<Error>(), AllOf(HasSubstr("column \"event_type\": row 2"), HasSubstr("found null")));
}

TEST_F(BadInput, ItemIdsTooLargeToIndexAttributes) {
  write_parquet(input_ / "artist_item_mapping.parquet",
                {{"artist_id", array<arrow::Int32Type>({1})},
                 {"item_id", array<arrow::Int64Type>({std::int64_t{1} << 50})}});
  EXPECT_THAT(message_of<UsageError>(), AllOf(HasSubstr("below 2^31"), HasSubstr("renumber")));
}

TEST_F(BadInput, NamesTheRowWithinALaterBatchAndFile) {
  std::vector<std::optional<std::int64_t>> users(300'000, 1);
  users[290'000] = -7;
  const Array zeros = array<arrow::Int64Type>(std::vector<std::optional<std::int64_t>>(users.size(), 0));
  write_parquet(log(),
                {{"uid", array<arrow::Int64Type>(users)},
                 {"timestamp", zeros},
                 {"item_id", zeros},
                 {"is_organic", zeros},
                 {"played_ratio_pct", zeros},
                 {"event_type", dictionary(std::vector<std::optional<std::string>>(users.size(), "like"))}});
  EXPECT_THAT(message_of<Error>(), AllOf(HasSubstr("row 290000"), HasSubstr("found -7")));
}

TEST_F(BadInput, OutputThatExistsIsNotTouched) {
  std::filesystem::create_directories(input_ / "ds");
  write_file(input_ / "ds" / "precious.txt", "mine");
  EXPECT_THROW(prepare(yambda_schema(input_, SplitRule{.test_days = 0}), input_, input_ / "ds"), UsageError);
  EXPECT_EQ(read_file(input_ / "ds" / "precious.txt"), "mine");
  EXPECT_FALSE(std::filesystem::exists(input_ / "ds.partial"));
}

}  // namespace
}  // namespace hstu
