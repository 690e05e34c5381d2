#include "hstu/balance/shared_work.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(SharedWork, LongSamplesGoToGroupsAndTheOthersAroundThem) {
  // Groups of ranks 0, 1 and 2, 3. Shared: 40, 40 and 12.
  const std::vector<std::int64_t> work{3, 40, 5, 12, 40, 7};
  const SharedWork shared{.context = 2, .is_shared = {0, 1, 0, 1, 1, 0}};
  const Partition parts = balanced_partition(work, 4, shared);
  // 1 and 4 to a group each, 3 to the other rank of the first, the others to the ranks with the least.
  EXPECT_EQ(parts, (Partition{{1}, {3}, {4, 5}, {0, 2}}));
  EXPECT_EQ(work_of_ranks(work, parts, shared), (std::vector<std::int64_t>{26, 26, 27, 28}));
}

TEST(SharedWork, WithoutSharedSamplesIsTheBalancedPartition) {
  const std::vector<std::int64_t> work{9, 2, 9, 4, 4, 1, 30, 0, 8};
  for (const int ranks : {2, 4, 6}) {
    const Partition expected = balanced_partition(work, ranks);
    for (const SharedWork& shared : {SharedWork{}, SharedWork{.context = 2}}) {
      EXPECT_EQ(balanced_partition(work, ranks, shared), expected);
      EXPECT_EQ(work_of_ranks(work, expected, shared), work_of_ranks(work, expected));
    }
  }
}

// Ranks 0 and 1 share all of their samples, and so do 2 and 3.
TEST(SharedWork, IsDividedOverTensorGroupsAndThenWithinThem) {
  const SharedWork shared{.tensor = 2};
  EXPECT_EQ(balanced_partition(std::vector<std::int64_t>{5, 9}, 4, shared), (Partition{{1}, {}, {0}, {}}));
  const std::vector<std::int64_t> work{8, 6, 4, 2};
  const Partition parts = balanced_partition(work, 4, shared);
  EXPECT_EQ(parts, (Partition{{0}, {3}, {1}, {2}}));
  EXPECT_EQ(work_of_ranks(work, parts, shared), (std::vector<std::int64_t>{5, 5, 5, 5}));
}

// A long sample is the work of ranks 0 to 3.
TEST(SharedWork, OfLongSamplesIsThatOfTheTensorGroupsOfAContextGroup) {
  const SharedWork shared{.tensor = 2, .context = 2, .is_shared = {0, 1, 0, 0, 0}};
  const std::vector<std::int64_t> work{20, 40, 16, 8, 4};
  const Partition parts = balanced_partition(work, 8, shared);
  EXPECT_EQ(parts, (Partition{{1}, {4}, {}, {}, {0}, {}, {2}, {3}}));
  EXPECT_EQ(work_of_ranks(work, parts, shared), (std::vector<std::int64_t>{12, 12, 10, 10, 10, 10, 12, 12}));
}

}  // namespace
}  // namespace hstu
