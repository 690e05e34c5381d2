#include "hstu/dataset/integer_column.h"

#include <string>

#include <gtest/gtest.h>

#include "hstu/base/npy.h"

namespace hstu {
namespace {

using Values = std::vector<std::int64_t>;

std::string type_of(const IntegerColumn& column) {
  return column.visit([](const auto& values) -> std::string {
    return npy_type<typename std::decay_t<decltype(values)>::value_type>();
  });
}

Values contents(const IntegerColumn& column) {
  Values values;
  for (std::int64_t i = 0; i < column.size(); ++i) values.push_back(column[i]);
  return values;
}

TEST(IntegerColumn, WidensWhenAValueDoesNotFitAndKeepsWhatItHolds) {
  IntegerColumn column;
  const struct {
    std::int64_t value;
    const char* type;
  } steps[] = {{255, "|u1"},   {256, "<u2"},        {65535, "<u2"},
               {65536, "<u4"}, {4294967295, "<u4"}, {4294967296, "<i8"}};
  Values expected;
  for (const auto& step : steps) {
    column.append(Values{step.value});
    expected.push_back(step.value);
    EXPECT_EQ(type_of(column), step.type) << step.value;
  }
  EXPECT_EQ(contents(column), expected);
}

TEST(IntegerColumn, HoldsNegativeValuesIn64Bits) {
  IntegerColumn column;
  column.append(Values{1, -1});
  EXPECT_EQ(type_of(column), "<i8");
  EXPECT_EQ(contents(column), (Values{1, -1}));
}

TEST(IntegerColumn, StartsAsWideAsAsked) {
  IntegerColumn column(IntegerColumn::Width::k4Bytes);
  column.append(Values{1});
  EXPECT_EQ(type_of(column), "<u4");
}

TEST(IntegerColumn, KeepsByMaskAndGathersRows) {
  IntegerColumn column;
  column.append(Values{5, 6, 7, 800});
  EXPECT_EQ(contents(column.gather(std::vector<std::uint32_t>{3, 0, 3})), (Values{800, 5, 800}));
  column.keep(std::vector<std::uint8_t>{1, 0, 0, 1});
  EXPECT_EQ(contents(column), (Values{5, 800}));
  EXPECT_EQ(column.integers(), (Values{5, 800}));
  EXPECT_EQ(column.bytes(), 4);
}

TEST(IntegerColumn, SetsElementsAndWidensForThem) {
  IntegerColumn column;
  column.resize(3);
  column.set(1, 300);
  EXPECT_EQ(type_of(column), "<u2");
  column.set(2, -1);
  EXPECT_EQ(contents(column), (Values{0, 300, -1}));
}

}  // namespace
}  // namespace hstu
