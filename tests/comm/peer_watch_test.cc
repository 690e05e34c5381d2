// Ranks of a group over TCP that end while another one waits for their GPUs.
#include "hstu/comm/peer_watch.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/tcp_ranks.h"
#include "hstu/comm/pending_exchanges.h"
#include "hstu/comm/transport.h"

namespace hstu {
namespace {

void wait_until(const std::function<bool()>& done) {
  while (!done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::string words_of_ended(const std::function<void()>& body) {
  try {
    body();
  } catch (const EndedRank& error) {
    return error.what();
  }
  return "no error";
}

TEST(PeerWatch, GivesUpWhatWaitsForARankThatHasEndedAndSaysSo) {
  std::latch both(2);
  std::string message, later;
  ::testing::internal::CaptureStderr();
  run_tcp_ranks(3, [&](Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 1) return;  // its connections end as those of a killed process
    std::atomic<bool> given_up = false;
    const PeerWatch watch(
        comm, [] { return false; }, [&] { given_up = true; }, 0.05);
    PendingExchanges pending(comm, [&] { watch.check_not_given_up(); });
    pending.add(1, {1}, [&] { return given_up.load(); });  // kernels that were aborted have ended
    const std::string words = words_of_ended([&] { pending.wait(1); });
    wait_until([&] { return given_up.load(); });
    EXPECT_EQ(words, words_of_ended([&] { pending.wait(1); }));
    if (comm.rank() == 0) message = words;
    if (comm.rank() == 0) later = words_of_ended([&] { watch.check_all_run(); });
    both.arrive_and_wait();  // so that no other rank ends before rank 1 was seen
  });
  const std::string printed = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(message, "rank 0: rank 1 has ended");
  EXPECT_EQ(later, message);
  for (const int rank : {0, 2})
    EXPECT_THAT(printed, ::testing::HasSubstr(fmt::format(
                             "rank {}: rank 1 has ended, and an exchange between GPUs waits for it", rank)));
}

// Its last messages arrive: an exchange that is not done yet may still come to its end.
TEST(PeerWatch, ARankThatIsDoneFirstIsNoMatter) {
  ::testing::internal::CaptureStderr();
  run_tcp_ranks(2, [&](Communicator& comm) {
    std::int64_t word = comm.rank();
    if (comm.rank() == 1) return comm.broadcast(std::span(&word, 1), 1);
    wait_until([&] { return comm.ended_rank() == 1; });  // although its message was not read
    std::atomic<int> asked = 0;
    std::atomic<bool> given_up = false;
    const PeerWatch watch(
        comm, [&] { return ++asked > 2; }, [&] { given_up = true; }, 30);
    wait_until([&] { return asked > 2; });
    EXPECT_NO_THROW(watch.check_not_given_up());
    EXPECT_EQ(words_of_ended([&] { watch.check_all_run(); }), "rank 0: rank 1 has ended");
    comm.broadcast(std::span(&word, 1), 1);
    EXPECT_EQ(word, 1);
    EXPECT_FALSE(given_up);
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(PeerWatch, LeavesRanksAloneThatAllRun) {
  std::latch both(2);
  run_tcp_ranks(2, [&](Communicator& comm) {
    std::atomic<bool> given_up = false;
    {
      const PeerWatch watch(
          comm, [] { return false; }, [&] { given_up = true; }, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      EXPECT_EQ(comm.ended_rank(), -1);
      EXPECT_NO_THROW(watch.check_all_run());
      both.arrive_and_wait();
    }
    EXPECT_FALSE(given_up);
    comm.barrier();
  });
}

}  // namespace
}  // namespace hstu
