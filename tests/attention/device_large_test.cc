// Batches large enough that what the kernels share between tiles is used again and again, or that 32 bits do
// not hold a position. The tests skip on machines without a GPU.
#ifdef HSTU_WITH_CUDA

#include "attention/device_kernels.h"

namespace hstu {
namespace {

class LargeAttentionOnGpu : public OnGpu {};

// Many times as many tiles as are computed at once.
TEST_P(LargeAttentionOnGpu, ManyShortSamples) {
  DeviceCase c{.name = "many samples", .lengths = {}, .heads = 4};
  std::mt19937 random(7);
  for (int i = 0; i < 260; ++i) c.lengths.push_back(static_cast<int>(random() % 200));
  run_and_compare<__nv_bfloat16>(with_kernels(c));
}

// Several tiles for each block, long and short ones by turns: the warps of a block are then in different
// tiles.
TEST_P(LargeAttentionOnGpu, ShortTilesAmongLongOnes) {
  DeviceCase c{.name = "long and short tiles", .lengths = {}, .heads = 4};
  for (int i = 0; i < 40; ++i) c.lengths.push_back(385 + 64 * (i % 3));
  run_and_compare<__nv_bfloat16>(with_kernels(c));
}

// More than a dimension of a grid may have.
TEST_P(LargeAttentionOnGpu, SeventyThousandTinySamples) {
  DeviceCase c{.name = "tiny samples", .lengths = {}, .heads = 1, .mask = {-1, 0, 2}, .period = 4099};
  std::mt19937 random(8);
  for (int i = 0; i < 70'000; ++i) {
    c.lengths.push_back(static_cast<int>(random() % 6));
    c.contexts.push_back(static_cast<int>(random() % 2));
    c.targets.push_back(static_cast<int>(random() % 4));
  }
  run_and_compare<__nv_bfloat16>(with_kernels(c));
}

TEST_P(LargeAttentionOnGpu, ElementsBeyondTwoToThe31) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  // 8,191 and the powers of two that a position could be cut off at have no common divisor: a row that a cut
  // position leads to holds something else.
  DeviceCase c = with_kernels({.name = "2^31", .lengths = {}, .period = 8191, .states_longest = true});
  c.heads = 2048 / c.head_dim;
  std::mt19937 random(9);
  for (std::int64_t tokens = 0; tokens < 1'100'000; tokens += c.lengths.back())
    c.lengths.push_back(static_cast<int>(2000 + random() % 2001));
  const HostBatch<__nv_bfloat16> host(c);
  const std::int64_t needed = DeviceBatch<__nv_bfloat16>::bytes_needed(host);
  std::size_t available = 0, all = 0;
  ASSERT_EQ(cudaMemGetInfo(&available, &all), cudaSuccess);
  if (static_cast<std::int64_t>(available) < needed + (std::int64_t{1} << 30)) {
    GTEST_SKIP() << fmt::format("needs {} GB of the GPU's memory, {} GB are free", needed / 1'000'000'000 + 2,
                                available / 1'000'000'000);
  }
  DeviceBatch<__nv_bfloat16> device(host);
  device.run();
  if (HasFatalFailure()) return;
  std::size_t beyond = 0;  // the first sample of which all elements are beyond
  while (host.offsets()[beyond] * host.width() < kMost) ++beyond;
  ASSERT_LT(beyond + 5, host.samples());
  std::vector<SampledRow> rows = choose_rows(host, beyond, host.samples(), 6);
  for (const std::size_t b : {std::size_t{0}, host.samples() / 3, host.samples() / 2, beyond - 1})
    for (const SampledRow& row : choose_rows(host, b, b + 1, 6)) rows.push_back(row);
  expect_right_rows(host, device, rows);
}

INSTANTIATE_TEST_SUITE_P(Kernels, LargeAttentionOnGpu, ::testing::ValuesIn(all_kernels()), name_of);

}  // namespace
}  // namespace hstu

#endif
