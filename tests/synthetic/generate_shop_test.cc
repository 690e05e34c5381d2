#include "hstu/synthetic/generate_shop.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

ShopOptions small_shop(const Path& output) {
  return {.events = 5'000, .format = ShopFormat::csv, .output = output};
}

TEST(GenerateShop, WritesTheSameLogAgain) {
  const Path folder = temporary_folder();
  const ShopCounts counts = generate_shop(small_shop(folder / "a"));
  generate_shop(small_shop(folder / "b"));
  const std::string log = read_file(folder / "a" / "events-00000.csv");
  EXPECT_EQ(log, read_file(folder / "b" / "events-00000.csv"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), counts.events + 1);
  EXPECT_GT(counts.bought, counts.events / 10);
  EXPECT_LT(counts.bought, counts.events / 2);
  ShopOptions other = small_shop(folder / "c");
  other.seed = 2;
  generate_shop(other);
  EXPECT_NE(log, read_file(folder / "c" / "events-00000.csv"));
}

TEST(GenerateShop, RefusesWhatCannotBe) {
  ShopOptions options = small_shop(temporary_folder() / "a");
  options.events = 0;
  EXPECT_THROW(generate_shop(options), UsageError);
}

}  // namespace
}  // namespace hstu
