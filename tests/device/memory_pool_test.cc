#include "hstu/device/memory_pool.h"

#include <cstring>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sanitizer/asan_interface.h>

#include "hstu/base/random.h"
#include "hstu/device/host_memory_pool.h"
#include "sanitizers.h"

namespace hstu {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::shared_ptr<HostMemoryPool> reusing_pool(std::int64_t limit = 0) {
  return std::make_shared<HostMemoryPool>(limit, true);
}

TEST(MemoryPool, HandsOutAFinishedBufferAgain) {
  const auto pool = reusing_pool();
  const std::byte* const first = pool->allocate(100'000).data();
  EXPECT_EQ(pool->allocate(100'000).data(), first);
  EXPECT_EQ(pool->allocate(99'000).data(), first);   // of the same class
  EXPECT_EQ(pool->allocate(60'000).data(), first);   // more than half of it
  EXPECT_NE(pool->allocate(20'000).data(), first);   // too small for such a block
  EXPECT_NE(pool->allocate(200'000).data(), first);  // too large
}

TEST(MemoryPool, BuffersAreDistinctAlignedAndWritable) {
  const auto pool = reusing_pool();
  std::vector<Buffer> buffers;
  for (std::int64_t bytes : {0, 1, 255, 256, 257, 5000, 70'000, 3'000'000}) {
    buffers.push_back(pool->allocate(bytes));
    EXPECT_EQ(buffers.back().bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers.back().data()) % 64, 0u);
    std::memset(buffers.back().data(), static_cast<int>(buffers.size()), static_cast<std::size_t>(bytes));
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    for (std::int64_t b = 0; b < buffers[i].bytes(); ++b) {
      ASSERT_EQ(static_cast<std::size_t>(buffers[i].data()[b]), i + 1);
    }
  }
}

TEST(MemoryPool, FiguresTellBytesHandedOutTheirPeakAndWhatIsHeld) {
  const auto pool = reusing_pool();
  {
    const Buffer a = pool->allocate(10'000);
    const Buffer b = pool->allocate(30'000);
    EXPECT_EQ(pool->figures().in_use, 40'000);
  }
  const Buffer c = pool->allocate(10'000);
  EXPECT_EQ(pool->figures().in_use, 10'000);
  EXPECT_EQ(pool->figures().peak, 40'000);
  EXPECT_GE(pool->figures().reserved, 40'000);
  EXPECT_LE(pool->figures().reserved, 50'000);
}

TEST(MemoryPool, TrimGivesBackAllThatIsNotInUse) {
  const auto pool = reusing_pool();
  Buffer kept = pool->allocate(100'000);
  { const Buffer other = pool->allocate(50 * kMiB); }
  EXPECT_GE(pool->figures().reserved, 50 * kMiB);
  pool->trim();
  EXPECT_LE(pool->figures().reserved, 125'000);
  std::memset(kept.data(), 1, 100'000);
  kept = Buffer();
  pool->trim();
  EXPECT_EQ(pool->figures().reserved, 0);
  EXPECT_EQ(pool->figures().peak, 50 * kMiB + 100'000);
}

TEST(MemoryPool, TheLimitNamesWhatWasAskedUsedAndAllowed) {
  const auto pool = reusing_pool(10 * kMiB);
  const Buffer kept = pool->allocate(6 * kMiB);
  try {
    pool->allocate(5 * kMiB);
    FAIL() << "no error";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("5242880 bytes"));
    EXPECT_THAT(error.what(), HasSubstr("6291456 bytes are in use"));
    EXPECT_THAT(error.what(), HasSubstr("limit is 10485760 bytes"));
    EXPECT_THAT(error.what(), HasSubstr("raise the limit"));
  }
  EXPECT_NO_THROW(pool->allocate(4 * kMiB));  // nothing was lost
}

TEST(MemoryPool, UnusedBlocksGiveWayToTheLimit) {
  const auto pool = reusing_pool(10 * kMiB);
  for (const std::int64_t mib : {1, 2, 4, 8}) {
    const Buffer buffer = pool->allocate(mib * kMiB);
    EXPECT_LE(pool->figures().reserved, 10 * kMiB);
  }
}

// Free lists by size that are never trimmed would hold the sum of the peaks of all phases.
TEST(MemoryPool, HoldsABoundedMultipleOfThePeakWhateverTheSizes) {
  const auto pool = reusing_pool();
  RandomStream random{3};
  for (int phase = 0; phase < 40; ++phase) {
    const std::int64_t typical = (std::int64_t{1} << (12 + phase % 13)) + phase * 1000;
    const std::int64_t together = 100 * kMiB / typical / 4;
    std::vector<Buffer> buffers;
    for (int i = 0; i < 200; ++i) {
      const auto bytes = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * typical)));
      if (static_cast<std::int64_t>(buffers.size()) < together)
        buffers.push_back(pool->allocate(bytes));
      else
        buffers[random.below(buffers.size())] = pool->allocate(bytes);
      const MemoryFigures figures = pool->figures();
      ASSERT_LE(figures.reserved, 2 * figures.peak + 16 * kMiB);
      ASSERT_LE(figures.in_use, figures.peak);
      ASSERT_LE(figures.in_use, figures.reserved);
    }
  }
  EXPECT_EQ(pool->figures().in_use, 0);
}

// Batches of different lengths: large blocks change their size, and none waits unused beside its like.
TEST(MemoryPool, StepsOfDifferentLengthsHoldTheMemoryOfTheLongest) {
  if (kSanitized) GTEST_SKIP() << "with a sanitizer no block changes its size";
  const auto pool = reusing_pool();
  for (const std::int64_t tokens : {900, 1000, 700, 800, 990, 650, 950, 1000, 720, 870}) {
    std::vector<Buffer> kept;
    for (int layer = 0; layer < 8; ++layer)
      for (const std::int64_t bytes_of_token : {3000, 9000, 12'000, 30'000, 50'000})
        kept.push_back(pool->allocate(tokens * bytes_of_token));
    const MemoryFigures figures = pool->figures();
    ASSERT_LE(figures.reserved, figures.peak + figures.peak / 10 + 16 * kMiB) << tokens;
  }
}

TEST(MemoryPool, ABlockThatChangesItsSizeIsWritableThroughout) {
  const auto pool = reusing_pool();
  for (const std::int64_t bytes : {4 * kMiB, 3 * kMiB, 5 * kMiB, 8 * kMiB, 300'000L}) {
    const Buffer buffer = pool->allocate(bytes);
    std::memset(buffer.data(), 7, static_cast<std::size_t>(bytes));
    EXPECT_EQ(buffer.data()[bytes - 1], std::byte{7});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
  }
}

TEST(MemoryPool, ARefusedChangeOfABlockLosesNothing) {
  const auto pool = reusing_pool(10 * kMiB);
  const Buffer kept = pool->allocate(4 * kMiB);
  { const Buffer other = pool->allocate(5 * kMiB); }
  EXPECT_THROW(pool->allocate(7 * kMiB), OutOfMemory);
  EXPECT_EQ(pool->figures().in_use, 4 * kMiB);
  EXPECT_NO_THROW(pool->allocate(6 * kMiB));
}

// What a training step does: after the first steps nothing comes from the system any more.
TEST(MemoryPool, ARepeatedPatternReservesNothingNew) {
  const auto pool = reusing_pool();
  const auto step = [&] {
    std::vector<Buffer> kept;
    for (std::int64_t layer = 1; layer <= 6; ++layer) {
      for (const std::int64_t mib : {3, 1, 7, 2})
        kept.push_back(pool->allocate(mib * kMiB + layer * 100'000));
      const Buffer scratch = pool->allocate(20 * kMiB);
    }
    while (!kept.empty()) {
      const Buffer gradient = pool->allocate(kept.back().bytes());
      kept.pop_back();
    }
  };
  step();
  step();
  const std::int64_t reserved = pool->figures().reserved;
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(pool->figures().reserved, reserved);
}

TEST(MemoryPool, ServesSeveralThreads) {
  const auto pool = reusing_pool();
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      RandomStream random{static_cast<std::uint64_t>(t)};
      std::vector<Buffer> buffers(8);
      for (int i = 0; i < 2000; ++i) {
        Buffer& buffer = buffers[random.below(buffers.size())];
        buffer = pool->allocate(static_cast<std::int64_t>(random.below(20'000)));
        std::memset(buffer.data(), t, static_cast<std::size_t>(buffer.bytes()));
      }
      for (const Buffer& buffer : buffers) {
        for (std::int64_t b = 0; b < buffer.bytes(); ++b) ASSERT_EQ(static_cast<int>(buffer.data()[b]), t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->figures().in_use, 0);
}

TEST(MemoryPool, BuffersKeepTheirPoolAlive) {
  auto pool = reusing_pool();
  const std::weak_ptr<HostMemoryPool> watched = pool;
  Buffer buffer = pool->allocate(1000);
  pool.reset();
  ASSERT_FALSE(watched.expired());
  std::memset(buffer.data(), 1, 1000);
  buffer = {};
  EXPECT_TRUE(watched.expired());
}

TEST(MemoryPool, WithoutReuseNothingIsHeld) {
  const auto pool = std::make_shared<HostMemoryPool>(0, false);
  { const Buffer buffer = pool->allocate(1000); }
  EXPECT_EQ(pool->figures().reserved, 0);
}

TEST(MemoryPool, AddressSanitizerSeesFreeBlocksAndTheEndsOfBuffers) {
  if (!kAddressSanitizer) GTEST_SKIP() << "needs a build with AddressSanitizer (./dev test --preset asan)";
  const auto pool = reusing_pool();
  const std::byte* data = nullptr;
  {
    const Buffer buffer = pool->allocate(1000);
    data = buffer.data();
    EXPECT_FALSE(__asan_address_is_poisoned(data + 999));
    EXPECT_TRUE(__asan_address_is_poisoned(data + 1000));
  }
  EXPECT_TRUE(__asan_address_is_poisoned(data));
  const Buffer again = pool->allocate(600);
  ASSERT_EQ(again.data(), data);
  EXPECT_FALSE(__asan_address_is_poisoned(data + 599));
  EXPECT_TRUE(__asan_address_is_poisoned(data + 600));
  // The pool that tensors use keeps nothing here, so that the sanitizer itself sees what is freed.
  const std::int64_t before = MemoryPool::host()->figures().reserved;
  { const Buffer buffer = MemoryPool::host()->allocate(1000); }
  EXPECT_EQ(MemoryPool::host()->figures().reserved, before);
}

}  // namespace
}  // namespace hstu
