// Logs as other programs write them in Parquet: nulls without a type, integers as doubles, bytes for texts,
// INT96.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/parquet_files.h"
#include "events/log_fixture.h"
#include "hstu/base/error.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/names.h"
#include "hstu/prepare/prepare.h"
#include "prepare/verified.h"

namespace hstu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Array kFour = array<arrow::Int64Type>({1, 2, 3, 4});

class ParquetTypes : public LogTest {
 protected:
  ParquetTypes() : LogTest("*.parquet") {}

  // A log of four events of the users 1 to 4, but for the columns of `others`.
  void write(const std::string& file, const NamedArrays& others) {
    NamedArrays columns = {{"user", kFour}, {"item", kFour}, {"at", kFour}};
    for (const auto& other : others) {
      const auto same = std::find_if(columns.begin(), columns.end(),
                                     [&](const auto& column) { return column.first == other.first; });
      if (same != columns.end()) columns.erase(same);
      columns.push_back(other);
    }
    write_parquet(input_ / file, columns);
  }

  Path prepared() {
    Path output = input_ / fmt::format("ds{}", datasets_++);
    manifest_ = prepare(schema_, input_, output);
    EXPECT_THAT(wrong(output), IsEmpty());
    return output;
  }

  std::string failure() {
    try {
      prepare(schema_, input_, input_ / "failed");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::vector<std::int64_t> contexts(const Path& folder) const {
    const Dataset dataset(folder);
    std::vector<std::int64_t> values;
    for (std::int64_t p = 0; p < dataset.events(); ++p) values.push_back(dataset.context("dev")[p]);
    return values;
  }

  Manifest manifest_;
  int datasets_ = 0;
};

TEST_F(ParquetTypes, ReadNullsWithoutATypeAsThoseOfTheOtherFiles) {
  const Array nulls = std::make_shared<arrow::NullArray>(4);
  schema_.context = {{.name = "dev", .column = "dev"}};
  schema_.null_as_zero = {"dev"};
  write("b.parquet", {{"dev", texts({"x", "y", "x", "y"})}});
  for (const char* name : {"a.parquet", "c.parquet"}) {  // before and after the file that says the type
    write(name, {{"dev", nulls}});
    EXPECT_THAT(contexts(prepared()), testing::UnorderedElementsAre(0, 1, 0, 2, 0, 1, 0, 2)) << name;
    std::filesystem::remove(input_ / name);
  }
  write("a.parquet", {{"dev", nulls}});
  schema_.actions.push_back({.name = "on_x", .bit = 2, .when = {parse_condition("dev = x")}});
  schema_.actions.push_back({.name = "not_x", .bit = 4, .when = {parse_condition("dev != x")}});
  schema_.allowed_texts = {{.column = "dev", .texts = {"x", "y"}}};
  const Dataset dataset(prepared());
  std::int64_t on_x = 0, not_x = 0;
  for (const std::uint8_t action : dataset.action()) on_x += (action & 2) / 2, not_x += (action & 4) / 4;
  EXPECT_EQ(on_x, 2);
  EXPECT_EQ(not_x, 6);
  schema_.null_as_zero = {};
  EXPECT_THAT(failure(), HasSubstr("a.parquet: column \"dev\": row 0 (counted from 0): expected a value"));
  schema_.drop_null = {"dev"};
  prepared();
  EXPECT_EQ(manifest_.counts.events, 4);
}

TEST_F(ParquetTypes, ReadWholeDoublesAsIntegers) {
  schema_.context = {{.name = "dev", .column = "dev"}};
  schema_.attributes = {{.name = "brand", .value_column = "brand", .file = "", .item_column = ""}};
  schema_.null_as_zero = {"dev"};
  write("a.parquet", {{"dev", kFour}, {"brand", kFour}});
  write("b.parquet", {{"user", array<arrow::DoubleType>({1.0, 2.0, 3.0, 4.0})},
                      {"item", array<arrow::FloatType>({1, 2, 3, 4})},
                      {"dev", array<arrow::DoubleType>({5.0, std::nullopt, 7.0, 8.0})},
                      {"brand", array<arrow::DoubleType>({1.0, 2.0, std::nullopt, 9.0})}});
  const Path folder = prepared();
  EXPECT_EQ(manifest_.counts.users, 4);
  EXPECT_EQ(manifest_.counts.items, 4);
  EXPECT_THAT(contexts(folder), ElementsAre(1, 5, 2, 0, 3, 7, 4, 8));
  EXPECT_EQ(Dataset(folder).attribute("brand").of(4), 9);
  write("b.parquet", {{"dev", array<arrow::DoubleType>({5.0, 6.0, 7.5, 8.0})}, {"brand", kFour}});
  EXPECT_THAT(failure(),
              HasSubstr("b.parquet: column \"dev\": row 2 (counted from 0): expected an integer for the "
                        "context, found 7.5 (the column has the type double)"));
  write(
      "b.parquet",
      {{"user", array<arrow::DoubleType>({1, 2, 3, 9007199254740992.0})}, {"dev", kFour}, {"brand", kFour}});
  EXPECT_THAT(failure(), HasSubstr("row 3 (counted from 0): expected an integer for the user id below "
                                   "9007199254740992, beyond which this type rounds integers"));
}

// 16777217 is no float: two users would be one.
TEST_F(ParquetTypes, RefuseIdsThatAFloatMayHaveRounded) {
  write("a.parquet", {{"user", array<arrow::FloatType>({1, 2, 3, 16777215})}});
  prepared();
  EXPECT_EQ(manifest_.counts.users, 4);
  write("a.parquet", {{"user", array<arrow::FloatType>({1, 2, 3, 16777216})}});
  EXPECT_THAT(failure(), HasSubstr("row 3 (counted from 0): expected an integer for the user id below "
                                   "16777216, beyond which this type rounds integers"));
}

template <typename Builder>
Array bytes(const std::vector<std::optional<std::string>>& values) {
  Builder builder;
  return build(builder, values);
}

TEST_F(ParquetTypes, ReadTextsThatAreNotMarkedAsUtf8) {
  schema_.keep_names = {"user"};
  write("a.parquet", {{"user", bytes<arrow::BinaryBuilder>({"u", "v", "w", "u"})}});
  write("b.parquet", {{"user", bytes<arrow::BinaryDictionaryBuilder>({"u", "u", "u", "u"})}});
  write("c.parquet", {{"user", texts({"x", "u", "u", "u"})}});
  const Path folder = prepared();
  EXPECT_EQ(manifest_.counts.users, 4);
  EXPECT_TRUE(Names(folder, manifest_, "user").id_of("w").has_value());
  write("b.parquet", {{"user", bytes<arrow::BinaryBuilder>({"\xC3\x28", "u", "u", "u"})}});
  EXPECT_THAT(failure(), HasSubstr("b.parquet: column \"user\": expected texts in UTF-8"));
}

TEST_F(ParquetTypes, ReadUuidsAsTexts) {
  schema_.keep_names = {"user"};
  arrow::FixedSizeBinaryBuilder builder(arrow::fixed_size_binary(16));
  for (int row = 0; row < 4; ++row)
    ASSERT_TRUE(builder.Append("\x0b\x8b\xb3\xa1\x6c\x1b\x4a\xd6\xa0\xf8\x6e\x9f\x1c\x6f\x4f\x5e").ok());
  write("a.parquet", {{"user", builder.Finish().ValueOrDie()}});
  const Path folder = prepared();
  EXPECT_TRUE(Names(folder, manifest_, "user").id_of("0b8bb3a1-6c1b-4ad6-a0f8-6e9f1c6f4f5e").has_value());
}

TEST_F(ParquetTypes, ReadTheNamesOfFoldersAsColumns) {
  schema_.files = {"day=*/*"};
  schema_.time = "day";
  schema_.context = {{.name = "shop", .column = "shop"}, {.name = "clock", .column = "hour"}};
  schema_.null_as_zero = {"shop"};
  schema_.csv->integers = {"hour"};
  schema_.actions = {{.name = "any", .bit = 1, .when = {parse_condition("shop = a:b")}}};
  const Path first = input_ / "day=2024-05-01" / "hour=7" / "shop=a%3Ab",
             second = input_ / "day=2024-05-02" / "hour=8" / "shop=__HIVE_DEFAULT_PARTITION__";
  schema_.files = {"day=*/hour=*/shop=*/*"};
  for (const Path& folder : {first, second}) std::filesystem::create_directories(folder);
  write_parquet(first / "a.parquet", {{"user", kFour}, {"item", kFour}});
  write_parquet(second / "a.parquet",
                {{"user", kFour}, {"item", kFour}, {"hour", kFour}});  // its own comes first
  const Path folder = prepared();
  EXPECT_EQ(manifest_.time, (TimeRange{.min = 1'714'521'600, .max = 1'714'608'000}));
  EXPECT_EQ(manifest_.counts.positives, 4);
  const Dataset dataset(folder);
  EXPECT_EQ(dataset.context("shop")[0], 1);
  EXPECT_EQ(dataset.context("shop")[1], 0);
  EXPECT_EQ(dataset.context("clock")[0], 7);
  EXPECT_EQ(dataset.context("clock")[1], 1);
  schema_.split = SplitRule{.train_days = 1, .gap_minutes = 0, .test_days = 1};
  EXPECT_THAT(failure(), HasSubstr("no event is left"));
  schema_.csv->integers = {"shop"};
  EXPECT_THAT(failure(), HasSubstr("the folder shop=a:b: expected a number"));
  schema_.context.push_back({.name = "dey", .column = "dey"});
  EXPECT_THAT(failure(), HasSubstr("the column \"dey\" does not exist"));
}

// Nanoseconds of 64 bits end in the year 2262; INT96, which Spark writes, does not.
TEST_F(ParquetTypes, ReadTheYearsOfInt96) {
  const std::vector<std::optional<std::int64_t>> seconds = {1'700'000'000, 253'402'214'400, -11'644'473'600,
                                                            5};
  std::vector<std::optional<std::int64_t>> micros;
  micros.reserve(seconds.size());
  for (const auto& second : seconds) micros.emplace_back(*second * 1'000'000 + 250'000);
  const auto table = arrow::Table::Make(
      arrow::schema({arrow::field("user", arrow::int64()), arrow::field("item", arrow::int64()),
                     arrow::field("at", arrow::timestamp(arrow::TimeUnit::MICRO))}),
      std::vector<Array>{kFour, kFour, timestamps(arrow::TimeUnit::MICRO, micros)});
  const auto output = arrow::io::FileOutputStream::Open((input_ / "a.parquet").string()).ValueOrDie();
  const auto int96 = parquet::ArrowWriterProperties::Builder().enable_deprecated_int96_timestamps()->build();
  ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), output, 1024,
                                         parquet::default_writer_properties(), int96)
                  .ok());
  ASSERT_TRUE(output->Close().ok());
  const Dataset dataset(prepared());
  for (std::int64_t p = 0; p < 4; ++p)
    EXPECT_EQ(dataset.time()[p], seconds[static_cast<std::size_t>(p)]) << p;
}

}  // namespace
}  // namespace hstu
