#include "hstu/comm/exchange_queue.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "comm/tcp_ranks.h"
#include "hstu/base/random.h"
#include "hstu/comm/groups.h"
#include "hstu/comm/thread_group.h"

namespace hstu {
namespace {

void sleep_at_random(RandomStream& random) {
  if (const std::uint64_t us = random.below(400); us < 200)
    std::this_thread::sleep_for(std::chrono::microseconds(us));
}

// Of the world and of two divisions of it at once. Ranks come to each at times of their own.
void exchange_in_all_groups(Communicator& world) {
  RandomStream random{derive_key(3, std::to_string(world.rank()))};
  ExchangeQueue queue(world);
  const DividedRanks ranks({world, nullptr, &queue}, {.tensor = 2});
  const Groups& groups = ranks.groups();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::int64_t> sums(33,
                                   0);  // each that of its group's ranks and of the one before in its queue
    std::vector<ExchangeQueue::Fence> fences(3, 0);
    for (std::size_t i = 3; i < sums.size(); ++i) {
      const Group& group = i % 3 == 0 ? groups.world : i % 3 == 1 ? groups.tensor : groups.replicas;
      fences.push_back(group.queue->submit(
          "sums", {}, [&sums, &group, i] { sums[i] = sums[i - 3] + group.host.sum(std::int64_t{1}); }));
      sleep_at_random(random);
    }
    groups.tensor.queue->wait(fences[31]);
    EXPECT_EQ(sums[31], 10 * 2);
    groups.world.queue->order_after(fences[30], {});
    groups.replicas.queue->wait(fences[32]);
    EXPECT_EQ(sums[30], 10 * world.size());
    EXPECT_EQ(sums[32], 10 * world.size() / 2);
    EXPECT_EQ(world.activity().stage, "sums");
    EXPECT_EQ(world.sum(std::int64_t{1}), world.size());  // the communicator is this thread's again
  }
}

TEST(ExchangeQueue, ExchangesTakePlaceInTheirOrderInEachGroup) {
  run_ranks(4, exchange_in_all_groups);
  run_tcp_ranks(4, exchange_in_all_groups);
}

TEST(ExchangeQueue, WhatAnExchangeThrowsEndsTheOthersAndIsThrownByWait) {
  ExchangeQueue queue(one_rank());
  std::atomic<int> calls = 0;
  queue.submit("first", {}, [&] { ++calls; });
  queue.submit("second", {}, [] { fail("the second broke"); });
  const ExchangeQueue::Fence last = queue.submit("third", {}, [&] { ++calls; });
  for (int i = 0; i < 2; ++i) EXPECT_THROW(queue.wait(last), Error);
  EXPECT_EQ(calls, 1);
}

TEST(ExchangeQueue, DroppedExchangesDoNotTakePlace) {
  ExchangeQueue queue(one_rank());
  std::atomic<bool> has_begun = false, may_end = false;
  std::atomic<int> calls = 0;
  queue.submit("first", {}, [&] {
    has_begun = true;
    while (!may_end) std::this_thread::yield();
    ++calls;
  });
  const ExchangeQueue::Fence dropped = queue.submit("second", {}, [&] { calls += 10; });
  while (!has_begun) std::this_thread::yield();
  std::jthread other([&] { queue.drop(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  may_end = true;
  other.join();
  EXPECT_EQ(calls, 1);
  queue.wait(dropped);
  queue.wait(queue.submit("third", {}, [&] { calls += 100; }));
  EXPECT_EQ(calls, 101);
}

// Messages between devices are on a stream in the order of the caller.
TEST(ExchangeQueue, OfDevicesExchangesAtOnce) {
  run_ranks(2, [](Communicator& comm) {
    const auto transport = staged_transport(comm);
    ExchangeQueue queue(comm, transport.get());
    std::byte out{static_cast<unsigned char>(comm.rank())}, in{9};
    const ExchangeQueue::Fence fence = queue.submit("bytes", {}, [&] {
      const DeviceMessage sent{1 - comm.rank(), &out, 1}, received{1 - comm.rank(), &in, 1};
      transport->exchange(std::span(&sent, 1), std::span(&received, 1), queue.stream());
    });
    EXPECT_EQ(std::to_integer<int>(in), 1 - comm.rank());
    EXPECT_EQ(fence, 1);
    queue.order_after(fence, {});
    queue.wait(fence);
  });
}

}  // namespace
}  // namespace hstu
