#include "hstu/batching/item_numbers.h"

#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/npy.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

// The item at every position p is kItems[p].
const std::vector<std::int64_t> kItems{7, 7, 5, 9, 5, 7, 3, 9, 9, 8};

class ItemNumbersTest : public testing::Test {
 protected:
  std::vector<std::int32_t> numbers_of(std::int64_t user_start, const std::vector<std::int64_t>& positions) {
    std::vector<std::int32_t> found(positions.size(), -2);
    numbers_.number(items_, user_start, positions, found.data());
    return found;
  }
  std::vector<std::int32_t> expected_of(const std::vector<std::int64_t>& positions) {
    std::vector<std::int32_t> expected;
    for (const std::int64_t p : positions)
      expected.push_back(numbers_.distinct().find(kItems[static_cast<std::size_t>(p)]));
    return expected;
  }
  void expect_right(std::int64_t user_start, const std::vector<std::int64_t>& positions) {
    const std::vector<std::int32_t> found = numbers_of(user_start, positions);
    EXPECT_EQ(found, expected_of(positions)) << "positions from " << positions.front();
  }

  static MappedColumn column() {
    const Path file = temporary_folder() / "item.npy";
    write_npy<std::int64_t>(file, kItems);
    return MappedColumn(file);
  }
  MappedColumn items_ = column();
  ItemNumbers numbers_;
};

TEST_F(ItemNumbersTest, NumbersFollowTheFirstAppearance) {
  EXPECT_EQ(numbers_of(2, {3, 4, 5}), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(numbers_of(2, {4, 6, 7}), (std::vector<std::int32_t>{1, 3, 0}));
}

TEST_F(ItemNumbersTest, HistoriesOfOneUserMayBeginEarlierLaterAndWithGaps) {
  expect_right(2, {5, 7});
  expect_right(2, {6, 7, 8});
  expect_right(2, {2, 8});
  expect_right(2, {9});
}

TEST_F(ItemNumbersTest, WhatIsKnownOfOneUserIsNotReadForAnother) {
  expect_right(0, {0, 1, 2});
  expect_right(6, {6, 7, 9});
  expect_right(0, {1, 2});
  numbers_.clear();
  EXPECT_EQ(numbers_of(0, {2, 3}), (std::vector<std::int32_t>{0, 1}));
}

}  // namespace
}  // namespace hstu
