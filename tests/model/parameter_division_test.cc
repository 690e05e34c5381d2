// Parts of parameters have the initial values of the whole.
#include <vector>

#include <gtest/gtest.h>

#include "hstu/model/parameters.h"

namespace hstu::testing_division {
namespace {

std::vector<float> initial_values(const Shape& shape, const Initializer& initializer,
                                  AxisDivision division = {}) {
  ParameterSet set(5, DType::f32);
  const Tensor& value = set.add("weight", shape, initializer, std::move(division)).value;
  return {value.data<float>(), value.data<float>() + value.size()};
}

TEST(DividedParameter, HasTheInitialValuesOfTheWholeOneInItsRanges) {
  const Shape shape{4, 6};
  for (const Initializer& initializer :
       {Initializer::normal(0.3), Initializer::uniform(2), Initializer::ones()}) {
    const std::vector<float> whole = initial_values(shape, initializer);
    std::vector<float> rows(whole.begin() + 6, whole.begin() + 18), columns;
    for (std::size_t row = 0; row < 4; ++row)
      for (const std::size_t column : {1, 4, 5}) columns.push_back(whole[6 * row + column]);
    EXPECT_EQ(initial_values(shape, initializer, {.axis = 0, .ranges = {{1, 3}}}), rows);
    EXPECT_EQ(initial_values(shape, initializer, {.axis = 1, .ranges = {{1, 2}, {4, 6}}}), columns);
    EXPECT_EQ(initial_values(shape, initializer, {.axis = 1, .ranges = {{0, 6}}}), whole);
  }
}

TEST(DividedParameter, KnowsThePlacesOfItsElementsInTheWhole) {
  const AxisDivision division{.whole = {2, 5, 3}, .axis = 1, .ranges = {{0, 1}, {3, 5}}};
  EXPECT_EQ(shape_of_part(division), (Shape{2, 3, 3}));
  std::vector<int> whole(30), part(18), back(30, -1);
  for (int i = 0; i < 30; ++i) whole[static_cast<std::size_t>(i)] = i;
  copy_from_whole(division, whole.data(), part.data());
  EXPECT_EQ(part, (std::vector<int>{0, 1, 2, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 25, 26, 27, 28, 29}));
  copy_to_whole(division, part.data(), back.data());
  for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(back[i], i % 15 >= 3 && i % 15 < 9 ? -1 : whole[i]);
}

TEST(DividedParameter, RangesThatDoNotFitAreRefused) {
  ParameterSet set(1, DType::f32);
  using Ranges = std::vector<AxisDivision::Range>;
  for (const Ranges& ranges : {Ranges{{0, 7}}, Ranges{{2, 1}}, Ranges{{3, 5}, {4, 6}}, Ranges{{-1, 2}}})
    EXPECT_THROW(set.add("weight", {4, 6}, Initializer::zeros(), {.axis = 1, .ranges = ranges}),
                 InternalError);
  EXPECT_THROW(set.add("weight", {4, 6}, Initializer::zeros(), {.axis = 2, .ranges = {{0, 1}}}),
               InternalError);
}

}  // namespace
}  // namespace hstu::testing_division
