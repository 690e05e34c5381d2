#include "hstu/comm/link_speeds.h"

#include <cmath>
#include <map>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/tcp_ranks.h"
#include "hstu/comm/thread_group.h"

namespace hstu {
namespace {

// From every rank to every other one: a speed; from a rank to itself: none.
void expect_speeds(const LinkSpeeds& speeds, int ranks) {
  ASSERT_EQ(speeds.ranks, ranks);
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      EXPECT_TRUE(std::isfinite(speeds.between(from, to)));
      EXPECT_EQ(speeds.between(from, to) > 0, from != to) << from << " to " << to;
    }
  }
}

TEST(LinkSpeeds, EveryPairOfProcessesIsMeasuredAndAllRanksKnowIt) {
  std::vector<LinkSpeeds> found(3);
  run_tcp_ranks(3, [&](Communicator& comm) {
    found[static_cast<std::size_t>(comm.rank())] = measure_links(comm, 1 << 16);
  });
  expect_speeds(found[0], 3);
  for (const LinkSpeeds& speeds : found) EXPECT_EQ(speeds.bytes_per_second, found[0].bytes_per_second);
}

// Counts the messages that a rank sends, by receiver and size.
class CountingTransport final : public DeviceTransport {
 public:
  explicit CountingTransport(Communicator& comm) : comm_(comm) {}
  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  std::string name() const override { return "counting"; }
  std::unique_ptr<DeviceTransport> part(Communicator&) override { return nullptr; }

  std::map<std::pair<int, std::int64_t>, int> sent, received;

 protected:
  void move(std::span<const DeviceMessage> sends, std::span<const DeviceMessage> receives,
            const Stream&) override {
    for (const DeviceMessage& message : sends) ++sent[{message.rank, message.bytes}];
    for (const DeviceMessage& message : receives) ++received[{message.rank, message.bytes}];
  }

 private:
  Communicator& comm_;
};

TEST(LinkSpeeds, EveryRankSendsTheSameToEveryOther) {
  run_ranks(3, [](Communicator& comm) {
    CountingTransport transport(comm);
    expect_speeds(measure_links(comm, transport, Device::host(), 1000), 3);
    EXPECT_EQ(transport.sent.size(), 2u);  // one size to each of the others
    for (const auto& [message, times] : transport.sent) {
      EXPECT_NE(message.first, comm.rank());
      EXPECT_EQ(message.second, 1000);
      EXPECT_EQ(times, transport.sent.begin()->second);
    }
    EXPECT_EQ(transport.received, transport.sent);
  });
}

}  // namespace
}  // namespace hstu
