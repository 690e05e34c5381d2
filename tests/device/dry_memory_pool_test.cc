#include "hstu/device/dry_memory_pool.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

constexpr std::int64_t kTiB = std::int64_t{1} << 40;

TEST(DryMemoryPool, CountsMoreThanTheMachineHas) {
  const auto pool = std::make_shared<DryMemoryPool>(DryDevice{});
  {
    const Buffer first = pool->allocate(kTiB), second = pool->allocate(kTiB);
    EXPECT_EQ(pool->figures().in_use, 2 * kTiB);
    EXPECT_NE(first.data(), second.data());
    first.data()[kTiB - 1] = std::byte{7};  // a small tensor that is copied has its values
    EXPECT_EQ(first.data()[kTiB - 1], std::byte{7});
  }
  const Buffer empty = pool->allocate(0);
  EXPECT_NE(empty.data(), nullptr);
  EXPECT_EQ(pool->figures().in_use, 256);
  EXPECT_EQ(pool->figures().peak, 2 * kTiB);
}

TEST(DryMemoryPool, WhatCannotBeReservedIsOutOfMemory) {
  const auto pool = std::make_shared<DryMemoryPool>(DryDevice{});
  EXPECT_THROW(pool->allocate(std::int64_t{1} << 62), OutOfMemory);
  EXPECT_EQ(pool->figures().in_use, 0);
}

}  // namespace
}  // namespace hstu
