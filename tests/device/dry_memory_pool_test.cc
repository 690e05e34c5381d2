#include "hstu/device/dry_memory_pool.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

// ThreadSanitizer leaves programs about 1.5 TiB of addresses.
constexpr std::int64_t kSize = std::int64_t{1} << 38;

TEST(DryMemoryPool, CountsMoreThanTheMachineHas) {
  const auto pool = std::make_shared<DryMemoryPool>(DryDevice{});
  {
    const Buffer first = pool->allocate(kSize), second = pool->allocate(kSize);
    EXPECT_EQ(pool->figures().in_use, 2 * kSize);
    EXPECT_NE(first.data(), second.data());
    first.data()[kSize - 1] = std::byte{7};  // a small tensor that is copied has its values
    EXPECT_EQ(first.data()[kSize - 1], std::byte{7});
  }
  const Buffer empty = pool->allocate(0);
  EXPECT_NE(empty.data(), nullptr);
  EXPECT_EQ(pool->figures().in_use, 256);
  EXPECT_EQ(pool->figures().peak, 2 * kSize);
}

TEST(DryMemoryPool, WhatCannotBeReservedIsOutOfMemory) {
  const auto pool = std::make_shared<DryMemoryPool>(DryDevice{});
  EXPECT_THROW(pool->allocate(std::int64_t{1} << 62), OutOfMemory);
  EXPECT_EQ(pool->figures().in_use, 0);
}

}  // namespace
}  // namespace hstu
