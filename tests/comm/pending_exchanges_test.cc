#include "hstu/comm/pending_exchanges.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/comm/thread_group.h"
#include "hstu/comm/transport.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(PendingExchanges, NameRankStepStageAndExchangeThatDoesNotEnd) {
  std::string message;
  ::testing::internal::CaptureStderr();
  run_ranks(3, [&](Communicator& comm) {
    if (comm.rank() > 0) return;
    comm.set_patience({.warn_seconds = 0.2, .give_up_seconds = 1});
    PendingExchanges pending(comm);
    comm.enter(16, "lookup");
    pending.add(1, {1, 2}, [] { return true; });
    comm.enter("dense gradients");
    pending.add(2, {1, 2}, [] { return false; });
    comm.enter("row gradients");
    pending.add(3, {1}, [] { return false; });
    try {
      pending.wait(1);
      pending.wait(3);
    } catch (const LostRank& error) {
      message = error.what();
    }
  });
  EXPECT_THAT(message,
              HasSubstr("rank 0 of 3 has waited 1 s for rank 1, 2 in exchange between GPUs 2 of step 17, "
                        "stage dense gradients: it has ended, hangs or was stopped"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("rank 0 of 3 has waited 0 s for rank 1, 2 in exchange between GPUs 2"),
                    HasSubstr("gives up after 1 s. Stack:\n  ")));
}

TEST(PendingExchanges, WaitAsLongAsTheyEndOneAfterAnother) {
  run_ranks(1, [&](Communicator& comm) {
    comm.set_patience({.warn_seconds = 60, .give_up_seconds = 0.5});
    PendingExchanges pending(comm);
    std::atomic<int> done = 0;
    for (int i = 0; i < 4; ++i) pending.add(i + 1, {1}, [&done, i] { return done > i; });
    const std::jthread gpu([&] {
      for (int i = 0; i < 4; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        ++done;
      }
    });
    EXPECT_NO_THROW(pending.wait(2));
    EXPECT_GE(done, 2);
    EXPECT_NO_THROW(pending.wait(4));
    EXPECT_EQ(done, 4);
    EXPECT_NO_THROW(pending.wait(4));
  });
}

}  // namespace
}  // namespace hstu
