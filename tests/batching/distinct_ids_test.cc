#include "hstu/batching/distinct_ids.h"

#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"

namespace hstu {
namespace {

// Few ids are sorted by comparisons, many by their digits. Small batches after a large one shrink the table.
TEST(DistinctIds, AreSortedWithTheirNumbers) {
  DistinctIds ids;
  RandomStream random{4};
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                         kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::size_t count : {0, 1, 100, 256, 257, 5000, 20, 20, 300})
    for (const std::uint64_t range : {std::uint64_t{300}, std::uint64_t{1} << 21, std::uint64_t{1} << 62}) {
      ids.clear();
      std::map<std::int64_t, std::int32_t> expected;
      const auto insert = [&](std::int64_t id) {
        const auto number = static_cast<std::int32_t>(expected.size());
        EXPECT_EQ(ids.insert(id), expected.try_emplace(id, number).first->second);
      };
      for (std::size_t i = 0; i < count; ++i)
        insert(static_cast<std::int64_t>(random.below(range)) - (i % 5 == 0 ? 150 : 0));
      if (count > 1) insert(kMost), insert(kLeast), insert(-1), insert(0);
      const auto sorted = ids.sorted();
      ASSERT_EQ(sorted.size(), expected.size());
      std::size_t i = 0;
      for (const auto& [id, number] : expected) {
        ASSERT_EQ(sorted[i].id, id) << count << " " << range;
        ASSERT_EQ(sorted[i++].number, number);
      }
    }
}

// All ids have the same high digits.
TEST(DistinctIds, OfANarrowRangeAreSorted) {
  DistinctIds ids;
  constexpr std::int64_t kFirst = std::int64_t{1} << 50;
  for (std::int64_t i = 999; i >= 0; --i) ids.insert(kFirst + i);
  const auto sorted = ids.sorted();
  for (std::int64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(sorted[static_cast<std::size_t>(i)].id, kFirst + i);
    ASSERT_EQ(sorted[static_cast<std::size_t>(i)].number, 999 - i);
  }
}

}  // namespace
}  // namespace hstu
