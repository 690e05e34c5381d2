#include "hstu/dataset/distinct_counter.h"

#include <set>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 24, kLittle = std::int64_t{1} << 14;

std::int64_t count(const std::vector<std::int64_t>& ids, std::int64_t memory, std::size_t cut = 1000) {
  const Path folder = temporary_folder() / "spill";
  std::int64_t result = 0;
  {
    DistinctCounter counter(folder, memory);
    for (std::size_t first = 0; first < ids.size(); first += cut) {
      IntegerColumn column;
      column.append(std::span(ids).subspan(first, std::min(cut, ids.size() - first)));
      counter.add(column);
    }
    result = counter.count();
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
  return result;
}

TEST(DistinctCounter, CountsDenseAndSparseIdsOnce) {
  EXPECT_EQ(count({}, kPlenty), 0);
  EXPECT_EQ(count({3, 3, 0, 7}, kPlenty), 3);
  EXPECT_EQ(count({0, 0}, kLittle), 1);
  EXPECT_EQ(count({1, std::int64_t{1} << 60, 1, (std::int64_t{1} << 62) + 1}, kPlenty), 3);
}

TEST(DistinctCounter, IsExactWithAnyMemory) {
  RandomStream random{.key = 5};
  for (const std::uint64_t range : {std::uint64_t{3'000}, std::uint64_t{1} << 22, std::uint64_t{1} << 62}) {
    std::vector<std::int64_t> ids;
    for (int i = 0; i < 20'000; ++i) ids.push_back(static_cast<std::int64_t>(random.below(range)));
    for (std::size_t i = 0; i < 5'000; ++i) ids.push_back(ids[random.below(ids.size())]);
    const auto expected = static_cast<std::int64_t>(std::set(ids.begin(), ids.end()).size());
    EXPECT_EQ(count(ids, kPlenty), expected) << range;
    EXPECT_EQ(count(ids, kLittle), expected) << range;  // spills
    EXPECT_EQ(count(ids, 0), expected) << range;
  }
}

}  // namespace
}  // namespace hstu
