#include "hstu/benchmark/attention_sweep.h"

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/device/memory_pool.h"

namespace hstu {
namespace {

AttentionTime one_millisecond(const AttentionBenchmark& b) {
  AttentionTime time;
  time.burst_ms = 1, time.flops = attention_flops(b);
  return time;
}

TEST(AttentionSweep, TimesEveryCellOnceAndLeavesOutWhatIsTooLong) {
  AttentionSweep sweep;
  sweep.samples = {1, 4}, sweep.lengths = {256, 1024}, sweep.most_tokens = 1024;
  sweep.shape.heads = 3, sweep.shape.sustained = false;
  std::vector<std::string> timed, told;
  const auto timer = [&](const AttentionBenchmark& b) {
    EXPECT_EQ(b.heads, 3);
    EXPECT_FALSE(b.sustained);
    timed.push_back(fmt::format("{}x{}", b.samples, b.length));
    return one_millisecond(b);
  };
  const auto cells = sweep_attention(sweep, timer, timer, [&](const AttentionSweepCell& cell) {
    told.push_back(fmt::format("{} {}x{} {}", cell.direction, cell.samples, cell.length, cell.why));
  });
  EXPECT_EQ(timed, (std::vector<std::string>{"1x256", "1x1024", "4x256", "1x256", "1x1024", "4x256"}));
  EXPECT_EQ(told, (std::vector<std::string>{
                      "fwd 1x256 ", "fwd 1x1024 ", "fwd 4x256 ", "fwd 4x1024 more than 1,024 tokens",
                      "bwd 1x256 ", "bwd 1x1024 ", "bwd 4x256 ", "bwd 4x1024 more than 1,024 tokens",
                      "both 1x256 ", "both 1x1024 ", "both 4x256 ", "both 4x1024 more than 1,024 tokens"}));
  ASSERT_EQ(cells.size(), 12u);
  EXPECT_EQ(cells[8].time->burst_ms, 2);
  EXPECT_EQ(cells[8].time->flops, cells[0].time->flops + cells[4].time->flops);
  EXPECT_FALSE(cells[11].time);
  EXPECT_TRUE(cells[2].time);
  EXPECT_FALSE(cells[3].time);
}

TEST(AttentionSweep, GoesOnWhereTheGpuIsFullButNotAfterAnotherFailure) {
  AttentionSweep sweep;
  sweep.samples = {1, 2}, sweep.lengths = {256}, sweep.backward = false;
  const auto full = [](const AttentionBenchmark& b) {
    return b.samples == 1 ? throw OutOfMemory("full") : one_millisecond(b);
  };
  const auto cells = sweep_attention(sweep, full, full, [](const AttentionSweepCell&) {});
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[0].why, "more memory than the GPU has free");
  EXPECT_TRUE(cells[1].time);
  const auto broken = [](const AttentionBenchmark&) -> AttentionTime { fail("illegal address"); };
  EXPECT_THROW(sweep_attention(sweep, broken, broken, [](const AttentionSweepCell&) {}), Error);
}

}  // namespace
}  // namespace hstu
