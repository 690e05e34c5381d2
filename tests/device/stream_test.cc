// Streams, events and copies on the host; gpu_test.cc has them on a GPU.
#include "hstu/device/stream.h"

#include <array>

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/device/pinned_memory.h"

namespace hstu {
namespace {

TEST(HostStreams, WorkIsDoneWhenTheCallReturns) {
  const Stream stream;
  std::array<int, 4> from{1, 2, 3, 4}, to{};
  copy_bytes(to.data(), from.data(), sizeof(from), stream);
  EXPECT_EQ(to, from);
  set_zero(to.data(), 2 * sizeof(int), stream);
  EXPECT_EQ(to, (std::array<int, 4>{0, 0, 3, 4}));
  copy_bytes(nullptr, nullptr, 0, stream);
}

TEST(HostStreams, EventsAreReachedAtOnceAndTime) {
  const Stream stream;
  Event first(Device::host(), true), second(Device::host(), true);
  EXPECT_TRUE(first.reached());
  first.record(stream);
  second.record(stream);
  stream.wait(second);
  EXPECT_TRUE(second.reached());
  EXPECT_GE(second.milliseconds_since(first), 0.0);
  EXPECT_THROW(second.milliseconds_since(Event()), InternalError);  // not timed
}

TEST(TransferMemory, OfTheHostIsOrdinaryMemory) {
  std::pmr::memory_resource* const memory = transfer_memory(Device::host());
  void* const bytes = memory->allocate(1000, 64);
  memory->deallocate(bytes, 1000, 64);
  EXPECT_EQ(memory, std::pmr::new_delete_resource());
}

}  // namespace
}  // namespace hstu
