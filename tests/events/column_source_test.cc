#include "hstu/events/column_source.h"

#include <array>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events/parquet_files.h"
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
  const Path file = temporary_folder() / "dates.parquet";
  write_parquet(file, {{"x", array<arrow::Date32Type>({1})}});
  const std::array<std::string, 1> columns = {"x"};
  try {
    open_columns(file, columns);
    FAIL() << "a date was accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("dates.parquet"), HasSubstr("\"x\""), HasSubstr("date32")));
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
