#include "hstu/comm/device_transport.h"

#include <string>

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/comm/thread_group.h"
#include "hstu/device/memory_pool.h"

namespace hstu {
namespace {

DeviceMessage message(int rank, std::string& text) {
  return {rank, reinterpret_cast<std::byte*>(text.data()), static_cast<std::int64_t>(text.size())};
}

// Rank r sends to rank s the words "r>s" and, if s > 0, s letters.
TEST(DeviceTransport, MessagesArriveInTheOrderOfTheirSends) {
  run_ranks(3, [](Communicator& comm) {
    const auto transport = staged_transport(comm);
    std::vector<std::string> out, in;
    for (int s = 0; s < 3; ++s) {
      out.push_back(std::to_string(comm.rank()) + ">" + std::to_string(s));
      out.emplace_back(static_cast<std::size_t>(s), static_cast<char>('a' + comm.rank()));
      in.emplace_back(3, ' ');
      in.emplace_back(static_cast<std::size_t>(comm.rank()), ' ');
    }
    std::vector<DeviceMessage> sends, receives;
    for (int s = 0; s < 3; ++s) {
      for (std::size_t k = 0; k < 2; ++k) {
        sends.push_back(message(s, out[2 * static_cast<std::size_t>(s) + k]));
        receives.push_back(message(s, in[2 * static_cast<std::size_t>(s) + k]));
      }
    }
    transport->exchange(sends, receives, Stream());
    for (int s = 0; s < 3; ++s) {
      EXPECT_EQ(in[2 * static_cast<std::size_t>(s)], std::to_string(s) + ">" + std::to_string(comm.rank()));
      EXPECT_EQ(in[2 * static_cast<std::size_t>(s) + 1],
                std::string(static_cast<std::size_t>(comm.rank()), static_cast<char>('a' + s)));
    }
  });
}

// Two exchanges between ranks 0 and 1, the second of which has all three.
TEST(DeviceTransport, ARankWithoutMessagesTakesPartInTheExchange) {
  run_ranks(3, [](Communicator& comm) {
    const auto transport = staged_transport(comm);
    for (const int ranks : {2, 3}) {
      std::string out = std::to_string(comm.rank()), in = " ";
      std::vector<DeviceMessage> sends, receives;
      if (comm.rank() < ranks) {
        sends.push_back(message((comm.rank() + 1) % ranks, out));
        receives.push_back(message((comm.rank() + ranks - 1) % ranks, in));
      }
      transport->exchange(sends, receives, Stream());
      EXPECT_EQ(in, comm.rank() < ranks ? std::to_string((comm.rank() + ranks - 1) % ranks) : " ");
    }
  });
}

// Two pairs: a rank tells its neighbour its number. `part` makes the transport of the pair.
template <typename Part>
void expect_messages_of_pairs(const Part& part) {
  run_ranks(4, [&](Communicator& world) {
    const auto all = staged_transport(world);
    const auto group = world.split(world.rank() % 2, "tensor");
    const auto pair = part(*all, *group);
    EXPECT_EQ(pair->rank(), group->rank());
    EXPECT_EQ(pair->size(), 2);
    std::string out = std::to_string(world.rank()), in = " ";
    const DeviceMessage sent = message(1 - pair->rank(), out), received = message(1 - pair->rank(), in);
    pair->exchange(std::span(&sent, 1), std::span(&received, 1), Stream());
    pair->wait(pair->begun());
    EXPECT_EQ(in, std::to_string((world.rank() + 2) % 4));
  });
}

TEST(DeviceTransport, APartHasTheRanksOfItsGroup) {
  expect_messages_of_pairs([](DeviceTransport& all, Communicator& group) { return all.part(group); });
}

TEST(DeviceTransport, AViewHasTheRanksOfItsGroup) {
  expect_messages_of_pairs([](DeviceTransport& all, Communicator& group) { return view_of(all, group); });
}

TEST(DeviceTransport, ARankThatReceivesLessThanItSendsItselfIsAnError) {
  const auto transport = staged_transport(one_rank());
  std::string text = "text";
  const DeviceMessage sent = message(0, text);
  EXPECT_THROW(transport->exchange(std::span(&sent, 1), {}, Stream()), InternalError);
}

// Values of rank r whose sum depends on the order.
std::vector<float> values_of(int rank, std::size_t n) {
  std::vector<float> values(n);
  RandomStream random{derive_key(7, std::to_string(rank))};
  for (float& x : values) x = static_cast<float>(random.normal() * 1000);
  return values;
}

// Makes the transport of each rank; the GPU of rank r is r % gpus.
template <typename Make>
void expect_sums_in_the_order_of_ranks(int ranks, int gpus, const Make& make) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, std::size_t{100003}}) {
    std::vector<float> expected(n, 0);
    for (int r = 0; r < ranks; ++r) {
      const std::vector<float> values = values_of(r, n);
      for (std::size_t i = 0; i < n; ++i) expected[i] += values[i];
    }
    run_ranks(ranks, [&](Communicator& comm) {
      const Device device = Device::cuda(comm.rank() % gpus);
      make_current(device);
      const Stream stream(device);
      const auto memory = MemoryPool::create(stream);
      const auto transport = make(comm, device);
      std::vector<float> values = values_of(comm.rank(), n);
      const Buffer there = memory->allocate(static_cast<std::int64_t>(n * sizeof(float)));
      copy_bytes(there.data(), values.data(), n * sizeof(float), stream);
      all_reduce_sum(reinterpret_cast<float*>(there.data()), static_cast<std::int64_t>(n), *transport,
                     *memory);
      copy_bytes(values.data(), there.data(), n * sizeof(float), stream);
      stream.synchronize();
      EXPECT_EQ(values, expected) << n;
    });
  }
}

template <typename T>
void expect_sums_on_the_host() {
  constexpr std::size_t kCount = 1001;
  const auto term = [](int rank, std::size_t i) {
    return static_cast<T>(values_of(rank, kCount)[i]) * static_cast<T>(rank % 2 == 0 ? 1000 : 1);
  };
  std::vector<T> expected(kCount, 0);
  for (int rank = 0; rank < 3; ++rank)
    for (std::size_t i = 0; i < kCount; ++i) expected[i] += term(rank, i);
  run_ranks(3, [&](Communicator& comm) {
    const auto transport = staged_transport(comm);
    std::vector<T> values;
    for (std::size_t i = 0; i < kCount; ++i) values.push_back(term(comm.rank(), i));
    all_reduce_sum(values.data(), std::ssize(values), *transport, *MemoryPool::host());
    EXPECT_EQ(values, expected);
  });
}

TEST(DeviceTransport, SumsOfEveryTypeAreInTheOrderOfRanks) {
  expect_sums_on_the_host<float>();
  expect_sums_on_the_host<double>();
  expect_sums_on_the_host<std::int32_t>();
}

TEST(DeviceTransport, SumsOnOneGpuAreInTheOrderOfRanks) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  for (const int ranks : {2, 3, 7})
    expect_sums_in_the_order_of_ranks(ranks, 1,
                                      [](Communicator& comm, Device) { return staged_transport(comm); });
}

TEST(DeviceTransport, SumsThroughNcclAreInTheOrderOfRanks) {
  const int gpus = cuda_device_count();
  if (gpus < 2) GTEST_SKIP() << "needs two GPUs";
  expect_sums_in_the_order_of_ranks(gpus, gpus, nccl_transport);
}

}  // namespace
}  // namespace hstu
