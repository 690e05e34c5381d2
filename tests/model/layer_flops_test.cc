#include "hstu/model/layer_flops.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "attention/sees.h"
#include "hstu/model/sasrec_stack.h"

namespace hstu {
namespace {

// Multiply-adds of a layer as its loops run, each counted as two.
LayerFlops counted(const HstuLayerConfig& layer, const SampleMask& mask, int queries) {
  LayerFlops flops;
  const std::int64_t width = layer.heads * layer.head_dim;
  for (int i = 0; i < mask.n; ++i) {
    const bool is_query = i >= mask.n - queries;
    flops.uvqk += 2 * layer.dim * width * (is_query ? 4 : 2);
    if (!is_query) continue;
    flops.projection += 2 * 3 * width * layer.dim;
    for (int j = 0; j < mask.n; ++j) {
      if (sees(mask, i, j)) flops.attention += 2 * width + 2 * width;
    }
  }
  return flops;
}

void expect_equal(const LayerFlops& found, const LayerFlops& expected, const std::string& what) {
  EXPECT_EQ(found.uvqk, expected.uvqk) << what;
  EXPECT_EQ(found.attention, expected.attention) << what;
  EXPECT_EQ(found.projection, expected.projection) << what;
}

// Trap: MFU computed without the attention mask.
TEST(LayerFlops, AreWhatTheLoopsOfALayerCount) {
  std::mt19937 random(3);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  const HstuLayerConfig layer{.dim = 12, .heads = 3, .head_dim = 5};
  for (int i = 0; i < 300; ++i) {
    const int n = below(40), h = n - (below(2) == 0 ? 0 : below(n + 1)), queries = below(n + 1);
    const SampleMask mask{
        n, below(2) == 0 ? 0 : below(h + 1), h, 1 + below(4), below(2) == 0 ? kUnlimited : below(20), 0};
    expect_equal(layer_flops(layer, mask, queries), counted(layer, mask, queries), describe(mask));
  }
}

TEST(LayerFlops, OfAStackCountTheLastLayerOnceForAllTokensAndOnceForTheWantedOnes) {
  const HstuStackConfig stack{.layers = 3, .layer = {.dim = 8, .heads = 2, .head_dim = 4}, .dropout = 0};
  const std::vector<SampleQueries> samples{{causal_mask(7), 1}, {causal_mask(0), 0}, {causal_mask(4), 4}};
  LayerFlops model, computed;
  for (const auto& [mask, wanted] : samples) {
    for (int layer = 0; layer < 3; ++layer) {
      model += counted(stack.layer, mask, mask.n);
      computed += counted(stack.layer, mask, layer == 2 ? wanted : mask.n);
    }
  }
  const StackFlops found = stack_flops(stack, samples);
  expect_equal(found.model, model, "model");
  expect_equal(found.computed, computed, "computed");
}

// 315.68 GFLOP for a sample of 4,096 tokens, forward and backward: MLPerf's DLRMv4 reference, which counts
// half of the square.
TEST(LayerFlops, AgreeWithTheFigureOfTheReferenceForALongSample) {
  const HstuStackConfig stack{.layers = 3, .layer = {.dim = 512, .heads = 4, .head_dim = 128}, .dropout = 0};
  const std::vector<SampleQueries> samples{{causal_mask(4096), 1}};
  const LayerFlops flops = stack_flops(stack, samples).model;
  EXPECT_NEAR(3e-9 * static_cast<double>(flops.uvqk), 77.31, 0.005);
  EXPECT_NEAR(3e-9 * static_cast<double>(flops.projection), 57.98, 0.005);
  EXPECT_NEAR(3.5e-9 * static_cast<double>(flops.attention), 180.39 * 4097 / 4096, 0.005);
  EXPECT_NEAR(1e-9 * static_cast<double>(flops.step()), 315.68, 0.06);
}

// 26.41 and 30.88 TFLOP for 32 samples of 4,099 tokens, 3 of them contexts, in 8 layers: NVIDIA's analysis of
// its example.
TEST(LayerFlops, AgreeWithTheFiguresOfNvidiasExampleForLayersOfItsSize) {
  const HstuStackConfig stack{.layers = 8, .layer = {.dim = 1024, .heads = 4, .head_dim = 256}, .dropout = 0};
  const std::vector<SampleQueries> samples(32, {sample_mask(4099, 3, 0, 1, -1, 0), 4099});
  const LayerFlops flops = stack_flops(stack, samples).model;
  EXPECT_NEAR(3e-12 * static_cast<double>(flops.uvqk), 26.41, 0.005);
  EXPECT_NEAR(3.5e-12 * static_cast<double>(flops.attention), 30.88, 0.01);
  EXPECT_NEAR(1e-12 * static_cast<double>(flops.projection), 6.60, 0.005);  // three times as wide as NVIDIA's
}

// A block's products: queries, keys and values, two of each pair, the output, two layers of the MLP.
TEST(LayerFlops, OfSasrecCountItsProducts) {
  const SasrecStackConfig stack{.layers = 2, .dim = 6, .heads = 2};
  const std::vector<SampleQueries> samples{{causal_mask(5), 1}};
  const StackFlops found = sasrec_flops(stack, samples);
  const std::int64_t e = 6, pairs = 15, last_pairs = 5;  // of 5 tokens; of the last one
  expect_equal(
      found.model,
      {.uvqk = 2 * 2 * e * e * 3 * 5, .attention = 2 * 4 * e * pairs, .projection = 2 * 2 * e * e * 15},
      "model");
  expect_equal(found.computed,
               {.uvqk = 2 * e * e * (15 + 11),
                .attention = 4 * e * (pairs + last_pairs),
                .projection = 2 * e * e * (15 + 3)},
               "computed");
}

}  // namespace
}  // namespace hstu
