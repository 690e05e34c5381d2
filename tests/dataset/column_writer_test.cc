#include "hstu/dataset/column_writer.h"

#include <gtest/gtest.h>

#include "hstu/base/npy.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using Values = std::vector<std::int64_t>;
using Width = IntegerColumn::Width;

IntegerColumn column_of(const Values& values) {
  IntegerColumn column;
  column.append(values);
  return column;
}

template <typename T>
Values read_values(const Path& file) {
  const NpyColumn<T> column(file);
  return {column.values().begin(), column.values().end()};
}

TEST(ColumnWriter, WidensWhatItHasWrittenWhenAValueDoesNotFit) {
  const Path file = temporary_folder() / "x.npy";
  ColumnWriter writer(file, Width::k1Byte);
  Values expected;
  for (const std::int64_t value : {7LL, 255LL, 256LL, 70'000LL, 5LL, 1LL << 32, -3LL}) {
    writer.append(column_of({value, 1}));
    expected.insert(expected.end(), {value, 1});
  }
  const ColumnInfo info = writer.close();
  EXPECT_EQ(read_values<std::int64_t>(file), expected);
  EXPECT_EQ(info, (ColumnInfo{.type = "<i8",
                              .count = 14,
                              .bytes = 128 + 14 * 8,
                              .checksum = checksum(std::as_bytes(std::span(expected))),
                              .min = -3,
                              .max = std::int64_t{1} << 32}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}), 1);
}

TEST(ColumnWriter, IsAsNarrowAsItsValuesWhateverTypeTheyComeIn) {
  const Path file = temporary_folder() / "x.npy";
  ColumnWriter writer(file, Width::k2Bytes);
  writer.append(Values{1, 65'535});  // 8 bytes wide
  writer.append(std::vector<std::uint8_t>{9});
  EXPECT_EQ(writer.close().type, "<u2");
  EXPECT_EQ(read_values<std::uint16_t>(file), (Values{1, 65'535, 9}));
}

TEST(ColumnWriter, WidensMoreThanOneBlockOfElements) {
  const Path file = temporary_folder() / "x.npy";
  Values values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i % 251);
  ColumnWriter writer(file, Width::k1Byte);
  writer.append(values);
  writer.append(Values{1'000});
  values.push_back(1'000);
  EXPECT_EQ(writer.close().count, 100'001);
  EXPECT_EQ(read_values<std::uint16_t>(file), values);
}

TEST(ColumnWriter, WritesAnEmptyColumnWithoutRange) {
  const Path file = temporary_folder() / "x.npy";
  const ColumnInfo info = ColumnWriter(file, Width::k4Bytes).close();
  EXPECT_EQ(info.type, "<u4");
  EXPECT_EQ(info.max, std::nullopt);
  EXPECT_EQ(NpyColumn<std::uint32_t>(file).size(), 0);
}

}  // namespace
}  // namespace hstu
