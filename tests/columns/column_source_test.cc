#include "hstu/columns/column_source.h"

#include <array>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/parquet_files.h"
#include "hstu/base/error.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using Kind = RawColumn::Kind;
using Integers = std::vector<std::int64_t>;
using testing::HasSubstr;

RawColumn read_one(const Array& values) {
  const Path file = temporary_folder() / "one.parquet";
  write_parquet(file, {{"x", values}});
  const std::array<std::string, 1> columns = {"x"};
  const auto source = open_columns(file, columns);
  EXPECT_EQ(source->total_rows(), values->length());
  RawBatch batch;
  EXPECT_TRUE(source->next(batch));
  EXPECT_EQ(batch.rows, values->length());
  return batch.columns.at(0);
}

template <typename ArrowType>
class IntegerTypes : public testing::Test {};
using AllIntegerTypes =
    testing::Types<arrow::Int8Type, arrow::Int16Type, arrow::Int32Type, arrow::Int64Type, arrow::UInt8Type,
                   arrow::UInt16Type, arrow::UInt32Type, arrow::UInt64Type>;
TYPED_TEST_SUITE(IntegerTypes, AllIntegerTypes);

TYPED_TEST(IntegerTypes, AreReadAtAnyWidthWithNullsAsZero) {
  constexpr auto kLargest = std::min<std::uint64_t>(std::numeric_limits<typename TypeParam::c_type>::max(),
                                                    std::numeric_limits<std::int64_t>::max());
  const RawColumn column = read_one(array<TypeParam>({1, std::nullopt, kLargest}));
  EXPECT_EQ(column.kind, Kind::kInteger);
  EXPECT_EQ(column.integers, (Integers{1, 0, static_cast<std::int64_t>(kLargest)}));
  EXPECT_EQ(column.nulls, (std::vector<std::uint8_t>{0, 1, 0}));
}

TEST(ParquetSource, RefusesIntegersBeyond63Bits) {
  EXPECT_THROW(read_one(array<arrow::UInt64Type>({std::uint64_t{1} << 63})), Error);
}

TEST(ParquetSource, KeepsTheFractionsOfTimestampsOfEveryUnit) {
  const RawColumn milli = read_one(timestamps(arrow::TimeUnit::MILLI, {1999, -1, std::nullopt, 2000}));
  EXPECT_EQ(milli.integers, (Integers{1, -1, 0, 2}));
  EXPECT_EQ(milli.nanoseconds, (Integers{999'000'000, 999'000'000, 0, 0}));
  EXPECT_EQ(read_one(timestamps(arrow::TimeUnit::MICRO, {1'000'001})).nanoseconds, (Integers{1'000}));
  EXPECT_EQ(read_one(timestamps(arrow::TimeUnit::NANO, {-1})).nanoseconds, (Integers{999'999'999}));
  EXPECT_TRUE(read_one(timestamps(arrow::TimeUnit::NANO, {3'000'000'000})).nanoseconds.empty());
  EXPECT_TRUE(read_one(timestamps(arrow::TimeUnit::SECOND, {7})).nanoseconds.empty());
}

TEST(ParquetSource, ReadsDatesAsTimes) {
  const RawColumn days = read_one(array<arrow::Date32Type>({-1, 2}));
  EXPECT_EQ(days.kind, Kind::kSeconds);
  EXPECT_EQ(days.integers, (Integers{-86'400, 172'800}));
  EXPECT_EQ(read_one(array<arrow::Date64Type>({86'400'000})).integers, (Integers{86'400}));
}

RawColumn read_decimals(std::int32_t scale, const std::vector<std::string>& values) {
  arrow::Decimal128Builder builder(arrow::decimal128(30, scale));
  for (const std::string& value : values)
    EXPECT_TRUE(builder.Append(arrow::Decimal128::FromString(value).ValueOrDie()).ok());
  EXPECT_TRUE(builder.AppendNull().ok());
  return read_one(builder.Finish().ValueOrDie());
}

TEST(ParquetSource, ReadsDecimals) {
  const RawColumn whole = read_decimals(0, {"9007199254740993", "-7"});
  EXPECT_EQ(whole.kind, Kind::kInteger);
  EXPECT_EQ(whole.integers, (Integers{9'007'199'254'740'993, -7, 0}));
  EXPECT_EQ(whole.nulls, (std::vector<std::uint8_t>{0, 0, 1}));
  const RawColumn places = read_decimals(2, {"12.75"});
  EXPECT_EQ(places.kind, Kind::kReal);
  EXPECT_EQ(places.reals, (std::vector<double>{12.75, 0}));
  EXPECT_THROW(read_decimals(0, {"12345678901234567890"}), Error);
}

Array text_lists(const std::vector<std::vector<std::string>>& values) {
  arrow::ListBuilder builder(arrow::default_memory_pool(), std::make_shared<arrow::StringBuilder>());
  auto& texts_of_row = static_cast<arrow::StringBuilder&>(*builder.value_builder());
  for (const auto& row : values) {
    EXPECT_TRUE(builder.Append().ok());
    for (const std::string& text : row) EXPECT_TRUE(texts_of_row.Append(text).ok());
  }
  EXPECT_TRUE(builder.AppendNull().ok());
  return builder.Finish().ValueOrDie();
}

TEST(ParquetSource, ReadsTheFirstElementsOfListsIfAsked) {
  const Path file = temporary_folder() / "lists.parquet";
  write_parquet(file,
                {{"a", array<arrow::Int64Type>({1, 2, 3, 4})}, {"x", text_lists({{"p", "q"}, {}, {"r"}})}});
  const std::array<std::string, 2> columns = {"x", "a"};
  EXPECT_THROW(open_columns(file, columns), UsageError);
  const auto source = open_columns(file, columns, {.lists = {"x"}});
  EXPECT_TRUE(source->is_text(0));
  EXPECT_FALSE(source->is_text(1));
  RawBatch batch;
  ASSERT_TRUE(source->next(batch));
  EXPECT_EQ(batch.columns[0].integers, (Integers{0, -1, 1, -1}));
  EXPECT_EQ(batch.columns[0].texts, (std::vector<std::string>{"p", "r"}));
  EXPECT_EQ(batch.columns[1].integers, (Integers{1, 2, 3, 4}));
}

TEST(ParquetSource, ReadsFewRowsAtATimeIfTextsAreLong) {
  const Path file = temporary_folder() / "long.parquet";
  std::vector<std::optional<std::string>> values;
  for (int i = 0; i < 64; ++i)
    values.emplace_back(std::string(1 << 20, static_cast<char>('a' + i % 20)) + std::to_string(i));
  write_parquet(file, {{"x", texts(values)}});
  const std::array<std::string, 1> columns = {"x"};
  const auto source = open_columns(file, columns);
  RawBatch batch;
  std::int64_t rows = 0;
  while (source->next(batch)) {
    EXPECT_LE(batch.rows, 9);
    rows += batch.rows;
  }
  EXPECT_EQ(rows, 64);
}

TEST(ParquetSource, ReadsBooleansFloatsAndTimestamps) {
  EXPECT_EQ(read_one(array<arrow::BooleanType>({true, false})).integers, (Integers{1, 0}));
  const RawColumn reals = read_one(array<arrow::FloatType>({0.5f, std::nullopt}));
  EXPECT_EQ(reals.kind, Kind::kReal);
  EXPECT_EQ(reals.reals, (std::vector<double>{0.5, 0}));
  const RawColumn times = read_one(timestamps(arrow::TimeUnit::MILLI, {1999, -1}));
  EXPECT_EQ(times.kind, Kind::kSeconds);
  EXPECT_EQ(times.integers, (Integers{1, -1}));  // rounded down
}

TEST(ParquetSource, ReadsTextsHoweverTheyAreStored) {
  const std::vector<std::optional<std::string>> words = {"like", "listen", std::nullopt, "like"};
  for (const Array& values : {texts(words), large_texts(words), text_views(words), dictionary(words)}) {
    const RawColumn column = read_one(values);
    ASSERT_EQ(column.kind, Kind::kText) << column.type_name;
    ASSERT_EQ(column.integers.size(), words.size());
    for (std::size_t r = 0; r < words.size(); ++r) {
      const std::int64_t code = column.integers[r];
      if (words[r]) {
        EXPECT_EQ(column.texts.at(static_cast<std::size_t>(code)), *words[r]) << column.type_name;
      } else {
        EXPECT_EQ(code, -1) << column.type_name;
      }
    }
  }
}

TEST(ParquetSource, ReadsAllRowGroupsInOrderAndOnlyTheColumnsAskedFor) {
  std::vector<std::optional<std::int64_t>> numbers;
  std::vector<std::optional<std::string>> words;
  for (std::int64_t i = 0; i < 1000; ++i) {
    numbers.push_back(i);
    words.push_back("w" + std::to_string(i / 100));
  }
  const Path file = temporary_folder() / "groups.parquet";
  write_parquet(file,
                {{"n", array<arrow::Int64Type>(numbers)}, {"w", dictionary(words)}, {"m", texts(words)}}, 70);
  const std::array<std::string, 2> columns = {"w", "n"};
  const auto source = open_columns(file, columns);
  RawBatch batch;
  std::int64_t row = 0;
  while (source->next(batch)) {
    EXPECT_EQ(batch.first_row, row);
    ASSERT_EQ(batch.columns.size(), 2u);
    for (std::size_t r = 0; r < static_cast<std::size_t>(batch.rows); ++r, ++row) {
      ASSERT_EQ(batch.columns[1].integers[r], row);
      const auto code = static_cast<std::size_t>(batch.columns[0].integers[r]);
      ASSERT_EQ(batch.columns[0].texts.at(code), *words[static_cast<std::size_t>(row)]);
    }
  }
  EXPECT_EQ(row, 1000);
}

TEST(ParquetSource, RefusesATypeItCannotRead) {
  const Path file = temporary_folder() / "clock.parquet";
  arrow::Time32Builder builder(arrow::time32(arrow::TimeUnit::SECOND), arrow::default_memory_pool());
  write_parquet(file, {{"x", build<arrow::Time32Builder, std::int32_t>(builder, {1})}});
  const std::array<std::string, 1> columns = {"x"};
  try {
    open_columns(file, columns);
    FAIL() << "a time of day was accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("clock.parquet"), HasSubstr("\"x\""), HasSubstr("time32")));
  }
}

// Rows of a MovieLens file as text, the way the columns say them.
std::vector<std::string> read_movielens(const char* name, const std::string& text,
                                        const std::vector<std::string>& columns) {
  const Path file = temporary_folder() / name;
  write_file(file, text);
  const auto source = open_columns(file, columns);
  std::vector<std::string> rows;
  RawBatch batch;
  while (source->next(batch)) {
    for (std::size_t r = 0; r < static_cast<std::size_t>(batch.rows); ++r) {
      std::string row;
      for (const RawColumn& column : batch.columns) {
        row += column.kind == Kind::kReal ? fmt::format(" {}", column.reals[r])
                                          : fmt::format(" {}", column.integers[r]);
      }
      rows.push_back(row);
    }
  }
  return rows;
}

TEST(MovieLensSource, ReadsTheRatingsOfEveryRelease) {
  const std::vector<std::string> columns = {"user", "item", "rating", "timestamp"};
  const std::vector<std::string> expected = {" 1 20 3 881250949", " 2 30 5 881250950"};
  EXPECT_EQ(read_movielens("u.data", "1\t20\t3\t881250949\n2\t30\t5\t881250950\n", columns), expected);
  EXPECT_EQ(read_movielens("ratings.dat", "1::20::3::881250949\n2::30::5::881250950", columns), expected);
  EXPECT_EQ(read_movielens("ratings.csv", "userId,movieId,rating,timestamp\r\n1,20,3.5,7\r\n", columns),
            std::vector<std::string>{" 1 20 3.5 7"});
}

TEST(MovieLensSource, ReadsRatingsByTheNamesInTheHeader) {
  const std::vector<std::string> columns = {"user", "item", "rating", "timestamp"};
  for (const char* text :
       {"movieId,userId,rating,timestamp\n20,1,3.5,7\n", "timestamp,rating,movie_id,USERID\r\n7,3.5,20,1\r\n",
        "\"userId\",\"movieId\",\"tag\",\"rating\",\"timestamp\"\n1,20,funny,3.5,7\n"})
    EXPECT_EQ(read_movielens("ratings.csv", text, columns), std::vector<std::string>{" 1 20 3.5 7"}) << text;
  const auto refusal = [&](const char* name, const std::string& text) {
    try {
      read_movielens(name, text, {"item"});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(
      refusal("ratings.csv", "userId,movieId,stars,timestamp\n1,20,3.5,7\n"),
      testing::AllOf(HasSubstr("ratings.csv: line 1: expected a header with userId"), HasSubstr("stars")));
  EXPECT_THAT(refusal("movies.csv", "title,movieId,genres\nShine (1996),1,x\n"),
              HasSubstr("movies.csv: line 1"));
  EXPECT_THAT(refusal("ratings.csv", "userId,movieId,rating,timestamp\n1,20,3.5\n"),
              HasSubstr("ratings.csv: line 2"));
}

TEST(MovieLensSource, LosesNoRowOfAFileWithoutAHeader) {
  EXPECT_EQ(read_movielens("ratings.csv", "1,20,3.5,7\n2,30,4,8\n", {"user", "item"}),
            (std::vector<std::string>{" 1 20", " 2 30"}));
  EXPECT_EQ(read_movielens("movies.csv", "11,Shine (1996),Drama\n12,Heat (1995),x\n", {"item", "year"}),
            (std::vector<std::string>{" 11 1996", " 12 1995"}));
}

TEST(MovieLensSource, TakesTheYearFromTheTitle) {
  const std::vector<std::string> columns = {"item", "year"};
  EXPECT_EQ(
      read_movielens("u.item", "1|Toy Story (1995)|x|(1901)\n267|unknown||\n3|Shine (1996) (V)|\n", columns),
      (std::vector<std::string>{" 1 1995", " 267 0", " 3 1996"}));
  EXPECT_EQ(read_movielens("movies.dat", "1::Toy Story (1995)::Animation\n", columns),
            std::vector<std::string>{" 1 1995"});
  EXPECT_EQ(read_movielens("movies.csv",
                           "movieId,title,genres\n11,\"American President, The (1995)\",Drama\n"
                           "12,(1234,(no genres listed)\n",
                           columns),
            (std::vector<std::string>{" 11 1995", " 12 0"}));
}

TEST(MovieLensSource, NamesTheFileAndLineOfAMalformedRating) {
  for (const char* line : {"1\t2\t3", "1\t2\tgood\t4", "1 2 3 4", "", "1\t2\t3\t4\t5", "1\t\t3\t4"}) {
    try {
      read_movielens("u.data", fmt::format("1\t2\t3\t4\n{}\n1\t2\t3\t4\n", line), {"user"});
      FAIL() << "accepted: " << line;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("u.data: line 2"), HasSubstr("user, item, rating")));
    }
  }
}

}  // namespace
}  // namespace hstu
