// Memory of rows that is slow to get comes ahead of them.
#include "hstu/rows/row_storage.h"

#include <atomic>
#include <limits>
#include <memory_resource>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using testing::HasSubstr;

// Gives `room` bytes at most.
class CountingMemory final : public std::pmr::memory_resource {
 public:
  std::atomic<std::int64_t> room = std::numeric_limits<std::int64_t>::max(), given = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (given + static_cast<std::int64_t>(bytes) > room) throw std::bad_alloc();
    given += static_cast<std::int64_t>(bytes);
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    given -= static_cast<std::int64_t>(bytes);
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

constexpr std::int64_t kWidth = 16, kChunkBytes = 64 * 16;  // 16 rows

TEST(RowStorage, KeepsItsRowsWhileChunksComeAhead) {
  CountingMemory memory;
  {
    RowStorage rows(kWidth, &memory, kChunkBytes, 1000);
    for (std::int64_t n = 1; n <= 1000; ++n) {
      rows.grow(n);
      std::fill_n(rows.row(n - 1), kWidth, static_cast<float>(n));
    }
    for (std::int64_t n = 1; n <= 1000; ++n) ASSERT_EQ(rows.row(n - 1)[kWidth - 1], static_cast<float>(n));
    EXPECT_EQ(rows.bytes(), 63 * kChunkBytes);
    EXPECT_EQ(memory.given, 63 * kChunkBytes) << "no more than the most rows need";
  }
  EXPECT_EQ(memory.given, 0);
}

TEST(RowStorage, EndsWhileChunksCome) {
  CountingMemory memory;
  for (int i = 0; i < 100; ++i) RowStorage(kWidth, &memory, kChunkBytes, 100'000).grow(5000);
  EXPECT_EQ(memory.given, 0);
}

TEST(RowStorage, FailsWhenRowsHaveNoMemoryAndNotBefore) {
  CountingMemory memory;
  memory.room = 10 * kChunkBytes;
  RowStorage rows(kWidth, &memory, kChunkBytes, 100'000);
  rows.grow(6 * 16);  // six more are asked for ahead, and four come
  rows.grow(7 * 16);
  rows.grow(10 * 16);
  try {
    rows.grow(11 * 16);
    FAIL() << "an eleventh chunk";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no memory for another 1.0 KiB of embedding rows beside 10.0 KiB"));
  }
  memory.room = 20 * kChunkBytes;
  rows.grow(11 * 16);
  EXPECT_GE(rows.bytes(), 11 * kChunkBytes);
}

}  // namespace
}  // namespace hstu
