#include "hstu/base/threads.h"

#include <cstdint>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace hstu {
namespace {

class Threads : public ::testing::Test {
 protected:
  Threads() { set_threads(3); }
  ~Threads() override { set_threads(before_); }
  int before_ = threads();
};

TEST_F(Threads, BlocksCoverTheRangeOnceAndDoNotDependOnTheirNumber) {
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    std::vector<int> calls(1000);
    std::vector<std::int64_t> begins(100);
    for (int run = 0; run < 4; ++run) {  // with and without other threads, as its cost becomes known
      parallel_blocks(1000, 10, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_EQ(end, begin + 10);
        ++begins[static_cast<std::size_t>(begin / 10)];
        for (std::int64_t i = begin; i < end; ++i) ++calls[static_cast<std::size_t>(i)];
      });
    }
    EXPECT_EQ(calls, std::vector<int>(1000, 4));
    EXPECT_EQ(begins, std::vector<std::int64_t>(100, 4));
  }
}

TEST_F(Threads, TheFirstExceptionLeavesTheLoop) {
  EXPECT_THROW(parallel_blocks(100, 1,
                               [](std::int64_t begin, std::int64_t) {
                                 if (begin == 17) throw std::runtime_error("17");
                               }),
               std::runtime_error);
}

TEST(LoopCost, ShortLoopsAreNotWorthThreads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "with the thread sanitizer every loop gets its threads";
#endif
  LoopCost cost;
  EXPECT_TRUE(cost.is_worth_threads(1));  // not known yet
  cost.add(1000, 10);                     // 100 ns an element
  EXPECT_FALSE(cost.is_worth_threads(10));
  EXPECT_FALSE(cost.is_worth_threads(799));
  EXPECT_TRUE(cost.is_worth_threads(800));  // 80 us
  for (int run = 0; run < 100; ++run) cost.add(10'000, 10);
  EXPECT_TRUE(cost.is_worth_threads(81));
  EXPECT_FALSE(cost.is_worth_threads(79));
}

}  // namespace
}  // namespace hstu
