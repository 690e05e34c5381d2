// Streams, events, the pool and pinned memory on a GPU. They skip where there is none.
#include <cstring>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/device/memory_pool.h"
#include "hstu/device/pinned_memory.h"
#include "hstu/device/stream.h"

namespace hstu {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no NVIDIA GPU can be used here";
    make_current(gpu_);
  }
  const Device gpu_ = Device::cuda(0);
};

// Numbers in pinned memory.
class PinnedNumbers {
 public:
  explicit PinnedNumbers(Device device, std::size_t count) : memory_(transfer_memory(device)), count_(count) {
    numbers_ = static_cast<std::int32_t*>(memory_->allocate(bytes(), 64));
  }
  ~PinnedNumbers() { memory_->deallocate(numbers_, bytes(), 64); }
  PinnedNumbers(const PinnedNumbers&) = delete;
  PinnedNumbers& operator=(const PinnedNumbers&) = delete;
  std::int32_t* begin() { return numbers_; }
  std::int32_t* end() { return numbers_ + count_; }
  std::size_t bytes() const { return count_ * sizeof(std::int32_t); }

 private:
  std::pmr::memory_resource* memory_;
  std::size_t count_;
  std::int32_t* numbers_;
};

// An event may take the place of one that has ended, which some other work has not reached yet.
TEST_F(OnGpu, AnEventThatWasNeverRecordedCountsAsReached) {
  const Stream stream(gpu_);
  const auto pool = MemoryPool::create(stream);
  const Buffer there = pool->allocate(64 * kMebibyte);
  for (const bool timed : {false, true}) {
    for (int i = 0; i < 20; ++i) set_zero(there.data(), static_cast<std::size_t>(64 * kMebibyte), stream);
    Event(gpu_, timed).record(stream);
    const Event next(gpu_, timed);
    EXPECT_TRUE(next.reached());
    next.synchronize();
    stream.wait(next);
    if (timed) {
      EXPECT_THROW(next.milliseconds_since(next), std::exception);
    }
  }
}

TEST_F(OnGpu, NumbersSurviveTheWayThereAndBackFromPinnedMemory) {
  const Stream stream(gpu_);
  const auto pool = MemoryPool::create(stream);
  PinnedNumbers from(gpu_, 1'000'000), to(gpu_, 1'000'000);
  std::iota(from.begin(), from.end(), 7);
  std::fill(to.begin(), to.end(), 0);
  const Buffer there = pool->allocate(static_cast<std::int64_t>(from.bytes()));
  copy_bytes(there.data(), from.begin(), from.bytes(), stream);
  set_zero(there.data(), 4 * sizeof(std::int32_t), stream);
  copy_bytes(to.begin(), there.data(), from.bytes(), stream);
  stream.synchronize();
  for (std::int32_t i = 0; i < 1'000'000; ++i) ASSERT_EQ(to.begin()[i], i < 4 ? 0 : i + 7);
}

TEST_F(OnGpu, AStreamWaitsForAnEventOfAnother) {
  const Stream first(gpu_), second(gpu_);
  const auto pool = MemoryPool::create(first);
  const Buffer there = pool->allocate(64 * kMebibyte);
  PinnedNumbers ones(gpu_, 16 * kMebibyte), back(gpu_, 16 * kMebibyte);
  std::fill(ones.begin(), ones.end(), 1);
  Event copied(gpu_);
  EXPECT_TRUE(copied.reached());  // never recorded
  copy_bytes(there.data(), ones.begin(), ones.bytes(), first);
  copied.record(first);
  second.wait(copied);
  copy_bytes(back.begin(), there.data(), ones.bytes(), second);
  second.synchronize();
  EXPECT_TRUE(copied.reached());
  EXPECT_TRUE(std::equal(ones.begin(), ones.end(), back.begin()));
}

TEST_F(OnGpu, TimedEventsMeasureTheWorkBetweenThem) {
  const Stream stream(gpu_);
  const auto pool = MemoryPool::create(stream);
  const Buffer there = pool->allocate(256 * kMebibyte);
  Event begin(gpu_, true), end(gpu_, true);
  begin.record(stream);
  for (int i = 0; i < 10; ++i) set_zero(there.data(), static_cast<std::size_t>(256 * kMebibyte), stream);
  end.record(stream);
  end.synchronize();
  EXPECT_GT(end.milliseconds_since(begin), 0.1);  // 2.5 GiB: more than 25 TB/s otherwise
  Event untimed(gpu_);
  untimed.record(stream);
  EXPECT_THROW(untimed.milliseconds_since(begin), InternalError);
}

TEST_F(OnGpu, ThePoolHandsOutFinishedMemoryAgainAndTrims) {
  const Stream stream(gpu_);
  const auto pool = MemoryPool::create(stream);
  std::int64_t reserved = 0;
  for (int i = 0; i < 20; ++i) {
    const Buffer buffer = pool->allocate(100 * kMebibyte);
    ASSERT_NE(buffer.data(), nullptr);
    EXPECT_GE(pool->figures().in_use, 100 * kMebibyte);
    if (i == 0) reserved = pool->figures().reserved;
  }
  EXPECT_EQ(pool->figures().reserved, reserved);
  EXPECT_GE(pool->figures().peak, 100 * kMebibyte);
  EXPECT_LT(pool->figures().peak, 200 * kMebibyte);
  const Buffer empty = pool->allocate(0);
  EXPECT_NE(empty.data(), nullptr);
  pool->trim();
  EXPECT_LT(pool->figures().reserved, reserved);
}

TEST_F(OnGpu, TheLimitOfThePoolNamesTheBytes) {
  const Stream stream(gpu_);
  const auto pool = MemoryPool::create(stream, 100 * kMebibyte);
  const Buffer kept = pool->allocate(60 * kMebibyte);
  try {
    pool->allocate(50 * kMebibyte);
    FAIL() << "no error";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("cuda:0"));
    EXPECT_THAT(error.what(), HasSubstr("52428800 bytes"));
    EXPECT_THAT(error.what(), HasSubstr("limit is 104857600 bytes"));
  }
  EXPECT_NO_THROW(pool->allocate(40 * kMebibyte));
}

TEST_F(OnGpu, MoreThanTheGpuHasIsOutOfMemoryAndHarmless) {
  const Stream stream(gpu_);
  const auto pool = MemoryPool::create(stream);
  EXPECT_THROW(pool->allocate(std::int64_t{1} << 46), OutOfMemory);
  const Buffer buffer = pool->allocate(kMebibyte);
  set_zero(buffer.data(), static_cast<std::size_t>(kMebibyte), stream);
  EXPECT_NO_THROW(stream.synchronize());
}

TEST_F(OnGpu, BuffersOutliveTheirPoolAndStream) {
  Buffer buffer;
  {
    const Stream stream(gpu_);
    buffer = MemoryPool::create(stream)->allocate(kMebibyte);
  }
  EXPECT_NE(buffer.data(), nullptr);
}

TEST_F(OnGpu, AMissingGpuIsAnError) {
  EXPECT_THROW(Stream(Device::cuda(cuda_device_count())), Error);
  EXPECT_NO_THROW(Stream(gpu_).synchronize());  // and a harmless one
}

}  // namespace
}  // namespace hstu
