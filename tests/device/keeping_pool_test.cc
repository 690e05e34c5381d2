#include "hstu/device/keeping_pool.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(KeepingPool, HandsOutTheSameMemoryAgainAndGivesNoneBack) {
  const auto from = MemoryPool::create(Stream());
  {
    const auto pool = std::make_shared<KeepingPool>(from);
    const std::byte* first = nullptr;
    {
      const Buffer a = pool->allocate(1000), b = pool->allocate(1000);
      first = a.data();
      EXPECT_NE(a.data(), b.data());
      EXPECT_EQ(pool->figures().in_use, 2048);
    }
    EXPECT_EQ(pool->figures().in_use, 0);
    EXPECT_EQ(pool->figures().reserved, 2048);
    const Buffer again = pool->allocate(900), small = pool->allocate(100), large = pool->allocate(4000);
    EXPECT_NE(small.data(), first);  // which would waste more than half of a block
    EXPECT_EQ(pool->figures().reserved, 2048 + 256 + 4096);
    EXPECT_EQ(from->figures().in_use, pool->figures().reserved);
  }
  EXPECT_EQ(from->figures().in_use, 0);
}

}  // namespace
}  // namespace hstu
