// The scratch memory of kernels in a dry run: what their launchers take on the planned GPU.
#include "hstu/kernels/dry.h"

#include <memory>
#include <span>

#include <gtest/gtest.h>

#include "hstu/kernels/gather_sum.h"
#include "hstu/kernels/layer_norm.h"

namespace hstu::kernels {
namespace {

constexpr DryDevice kHost{}, kAmpere{8, 0, 108}, kHopper{9, 0, 132};

// The peak of `run(stream)`.
template <typename Run>
std::int64_t peak_on(const DryDevice& device, const Run& run, bool in_groups = false) {
  const auto pool = std::make_shared<DryMemoryPool>(device, in_groups);
  run(pool->kernels());
  return pool->figures().peak;
}

template <typename T>
std::int64_t peak_of_backward(const DryDevice& device, bool with_weight, bool with_input, bool with_bias) {
  const ColumnRange columns[] = {{0, 128}, {128, 384}};
  T x{};
  Accumulator<T> sums{};
  LinearBackward<T> p{.rows = 65536,
                      .in = 256,
                      .weight_columns = 384,
                      .columns = columns,
                      .dx = {},
                      .dweight = {},
                      .dbias = {}};
  if (with_weight) p.dweight.to = &sums;
  if (with_input) p.dx.to = &x;
  if (with_bias) p.dbias.to = &sums;
  return peak_on(device, [&](DryStream stream) { linear_backward(p, stream); });
}

// The weight's gradient of 256 columns: 2 x 2 tiles of 128 x 128 on Ampere, so that about 264 / 4 parts of
// the 65,536 rows are wanted. A part has 1,024 rows, the next multiple of 32.
TEST(DryKernels, SumsOverTokensTakeAMatrixForEachPart) {
  EXPECT_EQ(peak_of_backward<BFloat16>(kAmpere, true, false, false), 64 * 256 * 256 * 4);
  // One tile of 256 x 256: 132 / 2 parts, enough for the kernels for Hopper.
  EXPECT_EQ(peak_of_backward<BFloat16>(kHopper, true, false, false), 64 * 256 * 256 * 4);
  // 4 x 4 tiles of 64 x 64 in 256 / 16 parts.
  EXPECT_EQ(peak_of_backward<float>(kAmpere, true, false, false), 16 * 256 * 256 * 4);
  EXPECT_EQ(peak_of_backward<BFloat16>(kAmpere, false, true, false), 0) << "many tiles and a short k";
  EXPECT_EQ(peak_of_backward<BFloat16>(kHost, true, true, true), 0);
}

// With few tiles on Hopper the kernels for Ampere compute, also those products that Hopper's do not cut.
TEST(DryKernels, ProductsOfFewTilesAreDividedAsOnAmpere) {
  const ColumnRange columns[] = {{0, 256}};
  const auto peak = [&](const DryDevice& device, std::int64_t rows) {
    const LinearForward<BFloat16> p{.rows = rows, .in = 2048, .weight_columns = 256, .columns = columns};
    return peak_on(device, [&](DryStream stream) { linear(p, stream); });
  };
  EXPECT_EQ(peak(kHopper, 256), 4 * 256 * 256 * 4) << "4 tiles; a part has at least 512 of 2048";
  EXPECT_EQ(peak(kAmpere, 256), 4 * 256 * 256 * 4);
  EXPECT_EQ(peak(kHopper, 12 * 256), 0) << "12 tiles of 256 x 256";
  EXPECT_EQ(peak(kAmpere, 12 * 256), 4 * 12 * 256 * 256 * 4) << "48 tiles, 264 / 48 parts, at most 4";
}

// 65,536 rows in 512 strips.
TEST(DryKernels, ABiasWithoutItsWeightTakesSumsOfStrips) {
  EXPECT_EQ(peak_of_backward<BFloat16>(kAmpere, false, false, true), 512 * 256 * 4);
  EXPECT_EQ(peak_of_backward<float>(kHopper, false, false, true), 512 * 256 * 4);
}

// Hopper's kernels and those on CUDA cores sum the bias's gradient beside the parts of the weight's; those
// for tensor cores since Ampere sum it before, in strips, which take less than the parts.
TEST(DryKernels, ABiasBesideItsWeightTakesARowOfEachPart) {
  EXPECT_EQ(peak_of_backward<BFloat16>(kHopper, true, false, true), 64 * (256 + 1) * 256 * 4);
  EXPECT_EQ(peak_of_backward<float>(kAmpere, true, false, true), 16 * (256 + 1) * 256 * 4);
  EXPECT_EQ(peak_of_backward<BFloat16>(kAmpere, true, false, true), 64 * 256 * 256 * 4);
}

TEST(DryKernels, NormsTakeTheSumsOfTheirBlocks) {
  const auto backward = [](DryStream stream) {
    const LayerNormBackward<float> p{.rows = 1000, .width = 64, .dx = {}, .dweight = {}, .dbias = {}};
    layer_norm_backward(p, stream);
    swish_layer_norm_backward(p, stream);
    layer_norm(LayerNormForward<float>{.rows = 1000, .width = 64}, stream);
  };
  const std::int64_t once = 2 * 264 * 64 * 4;
  EXPECT_EQ(peak_on(kHopper, backward), once);
  EXPECT_EQ(peak_on(kHopper, backward, true), 2 * once) << "in groups sums of parameters wait for the end";
  EXPECT_EQ(peak_on(kHost, backward), 0);
}

TEST(DryKernels, SumsByRowTakeSortedTokensAndTwoRowsOfEachChunk) {
  float row = 0;
  const auto peak = [&](std::int64_t tokens, float* to) {
    const ScatterAdd<float> p{.tokens = tokens, .width = 64, .drows = {.to = to}};
    return peak_on(kAmpere,
                   [&](DryStream stream) { scatter_add(std::span<const ScatterAdd<float>>(&p, 1), stream); });
  };
  EXPECT_EQ(peak(16000, &row), 16 * 16000 + 2 * 1000 * 64 * 4);
  EXPECT_EQ(peak(1 << 17, &row), 16 * (1 << 17) + 2 * (1 << 11) * 64 * 4) << "longer chunks";
  EXPECT_EQ(peak(16000, nullptr), 0);
}

}  // namespace
}  // namespace hstu::kernels
