#include "hstu/comm/message_group.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/tcp_ranks.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

TEST(MessageGroup, ALargeSumHasTheOrderOfRanks) {
  constexpr std::size_t kCount = 100'003;  // more than is summed on every rank
  std::vector<float> expected(kCount, 0);
  for (int rank = 0; rank < 3; ++rank)
    for (std::size_t i = 0; i < kCount; ++i)
      expected[i] += 1.0f / static_cast<float>(i + 7u * static_cast<unsigned>(rank) + 1);
  run_tcp_ranks(3, [&](Communicator& comm) {
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i)
      values[i] = 1.0f / static_cast<float>(i + 7u * static_cast<unsigned>(comm.rank()) + 1);
    comm.all_reduce_sum(std::span(values));
    EXPECT_EQ(values, expected);
  });
}

TEST(MessageGroup, NamesTheRankThatDoesNotAnswer) {
  std::string message;
  ::testing::internal::CaptureStderr();
  run_tcp_ranks(3,
                [&](Communicator& comm) {
                  if (comm.rank() == 1) return std::this_thread::sleep_for(std::chrono::seconds(2));
                  comm.enter(16, "lookup");
                  try {
                    comm.barrier();
                  } catch (const LostRank& error) {
                    if (comm.rank() == 0) message = error.what();
                  }
                },
                {.warn_seconds = 0.2, .give_up_seconds = 1});
  EXPECT_THAT(message,
              HasSubstr("rank 0 of 3 has waited 1 s for rank 1 in barrier 1 of step 17, stage lookup"));
  const std::string notices = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(notices, HasSubstr("gives up after 1 s. Stack:\n  "));
  EXPECT_THAT(notices, HasSubstr("rank 2 of 3 has waited"));
}

TEST(MessageGroup, ARankThatEndsIsNoticedAtOnce) {
  std::string message;
  run_tcp_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == 1) return;
    try {
      for (;;) comm.barrier();
    } catch (const EndedRank& error) {
      message = error.what();
    }
  });
  EXPECT_EQ(message, "rank 0: rank 1 has ended");
}

TEST(TcpTransport, NamesTheRanksThatDoNotCome) {
  Listener listener = listen_on("127.0.0.1", 0);
  const int port = listener.port;
  try {
    tcp_transport({.rank = 0,
                   .ranks = 3,
                   .host = "127.0.0.1",
                   .port = port,
                   .listener = std::move(listener.socket),
                   .seconds = 0.3});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("for rank 1, 2, which did not come"));
  }
}

TEST(TcpTransport, NamesTheAddressThatCannotBeReached) {
  try {
    tcp_transport({.rank = 1, .ranks = 2, .host = "127.0.0.1", .port = 1, .seconds = 0.3});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 cannot reach rank 0 at 127.0.0.1:1"));
  }
}

}  // namespace
}  // namespace hstu
