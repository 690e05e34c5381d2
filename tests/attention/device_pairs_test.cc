// Attention pair by pair on GPUs (hidden keys, cached keys, dropout; softmax and SiLU) against the CPU form
// in fp64. The tests skip on machines without a GPU.
#ifdef HSTU_WITH_CUDA

#include "attention/device_pairs.h"

#include <string>
#include <vector>

namespace hstu {
namespace {

class AttentionByPairsOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  }
  template <typename T>
  static void expect_as_on_cpu(PairsCase c) {
    for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
      // SiLU without any of these has other kernels.
      if (score == ScoreFunction::silu && c.dropout == 0 && c.past.empty() && c.shape.mask.hidden_period == 0)
        continue;
      for (const int head_dim : {8, 25, 64, 128, 256}) {
        c.shape.head_dim = head_dim;
        const std::string what = fmt::format("{}, {} bytes, head size {}, softmax {}: ", c.name, sizeof(T),
                                             head_dim, score == ScoreFunction::softmax);
        PairsTest<T> test(c, score);
        const PairsResult exact = test.exact(), found = test.on_gpu();
        // Scores of large heads are about 30: their rounding is that of the weights.
        const double limit = sizeof(T) == 4 ? 1e-4 : 1.0 / 256;
        expect_pairs(found.o, exact.o, limit, what + "o");
        expect_pairs(found.dq, exact.dq, limit, what + "dq");
        expect_pairs(found.dk, exact.dk, limit, what + "dk");
        expect_pairs(found.dv, exact.dv, limit, what + "dv");
        expect_pairs(found.d_position, exact.d_position, limit, what + "position table");
        expect_pairs(found.d_time, exact.d_time, limit, what + "time table");
        const PairsResult again = test.on_gpu();
        for (const auto part : {&PairsResult::o, &PairsResult::dq, &PairsResult::dk, &PairsResult::dv,
                                &PairsResult::d_position, &PairsResult::d_time})
          EXPECT_TRUE(same_bits(found.*part, again.*part)) << what << "two runs differ";
      }
    }
  }
  template <typename... Types>
  static void expect_types(const PairsCase& c) {
    (expect_as_on_cpu<Types>(c), ...);
  }
};

TEST_F(AttentionByPairsOnGpu, KeysThatAreHiddenFromOtherPeriods) {
  AttentionMask causal;
  causal.hidden_period = 5, causal.hidden_phase = 4;
  AttentionMask mixed{.left = 40, .right = 0, .target_group = 4};
  mixed.hidden_period = 3, mixed.hidden_phase = 1;
  expect_types<float, __nv_bfloat16, __half>(
      {.name = "hidden", .shape = {.lengths = {129, 1, 0, 70, 16, 33}, .mask = causal}});
  expect_types<float, __nv_bfloat16>({.name = "hidden, contexts and targets, dropout",
                                      .shape = {.lengths = {90, 5, 60},
                                                .contexts = {3, 0, 10},
                                                .targets = {12, 5, 20},
                                                .mask = mixed,
                                                .heads = 3},
                                      .dropout = 0.3});
}

TEST_F(AttentionByPairsOnGpu, CachedKeysInPages) {
  AttentionMask hidden;
  hidden.hidden_period = 4, hidden.hidden_phase = 2;
  const std::vector<int> past{50, 0, 7};
  const std::vector<std::int32_t> past_of{2, -1, 0, 0, 1};
  expect_types<float, __nv_bfloat16, __half>(
      {.name = "cached", .shape = {.lengths = {1, 40, 1, 33, 3}}, .past = past, .past_of = past_of});
  expect_types<float, __nv_bfloat16>({.name = "cached, few queries, hidden, contexts, dropout",
                                      .shape = {.lengths = {6, 40, 1, 33, 3},
                                                .queries = {1, 17, 1, 2, 0},
                                                .contexts = {3, 1, 2, 0, 1},
                                                .mask = hidden,
                                                .heads = 3},
                                      .dropout = 0.2,
                                      .past = past,
                                      .past_of = past_of});
}

TEST_F(AttentionByPairsOnGpu, ARelativeBiasOfCachedKeys) {
  AttentionMask hidden;
  hidden.hidden_period = 4, hidden.hidden_phase = 2;
  const std::vector<int> past{50, 0, 7};
  const std::vector<std::int32_t> past_of{2, -1, 0, 0, 1};
  expect_types<float, __nv_bfloat16, __half>({.name = "cached, both tables",
                                              .shape = {.lengths = {1, 40, 1, 33, 3}},
                                              .past = past,
                                              .past_of = past_of,
                                              .positions = 30,
                                              .buckets = 20});
  expect_types<float, __nv_bfloat16>({.name = "cached, tables of heads, hidden, contexts, dropout",
                                      .shape = {.lengths = {6, 40, 1, 33, 3},
                                                .queries = {1, 17, 1, 2, 0},
                                                .contexts = {3, 1, 2, 0, 1},
                                                .mask = hidden,
                                                .heads = 3},
                                      .dropout = 0.2,
                                      .past = past,
                                      .past_of = past_of,
                                      .positions = 100,
                                      .buckets = 40,
                                      .of_heads = true});
  expect_types<float>(
      {.name = "positions alone, no past", .shape = {.lengths = {70, 5}}, .dropout = 0.1, .positions = 20});
}

// Few samples, whose keys several blocks share out, and many.
TEST_F(AttentionByPairsOnGpu, TilesOfQueries) {
  if (cuda::attention_device().major != 9) GTEST_SKIP() << "no Hopper here";
  const std::vector<int> past{50, 0, 700, 64};
  const std::vector<PairsCase> cases{
      {.name = "one past", .shape = {.lengths = {101}, .targets = {100}}, .past = past, .past_of = {2}},
      {.name = "pasts, few queries",
       .shape = {.lengths = {30, 200, 1, 33, 3, 70},
                 .queries = {30, 17, 1, 2, 0, 70},
                 .targets = {5, 40, 1, 30, 3, 0},
                 .heads = 3},
       .past = past,
       .past_of = {2, -1, 0, 0, 1, 3}},
      {.name = "pasts, many",
       .shape = {.lengths = std::vector<int>(70, 90), .targets = std::vector<int>(70, 81)},
       .past = past,
       .past_of = std::vector<std::int32_t>(70, 0)},
      {.name = "a long sample", .shape = {.lengths = {900}, .queries = {600}, .targets = {600}}},
      {.name = "windows and contexts",
       .shape = {.lengths = {300, 5, 170},
                 .queries = {150, 5, 100},
                 .contexts = {70, 0, 10},
                 .targets = {100, 5, 20},
                 .mask = {.left = 40, .right = 3, .target_group = 4}}}};
  for (PairsCase c : cases) {
    for (const int head_dim : {64, 128, 256}) {
      c.shape.head_dim = head_dim, c.shape.gap = 8;
      const std::string what = fmt::format("{}, head size {}", c.name, head_dim);
      constexpr int kPage = 16;  // tokens: whole boxes of the tensor copy engine
      PairsTest<__nv_bfloat16> test(c, ScoreFunction::silu, kPage);
      const PairsResult found = test.on_gpu(AttentionKernel::queries);
      expect_pairs(found.o, test.exact().o, 1.0 / 128, what);
      EXPECT_TRUE(same_bits(found.o, test.on_gpu(AttentionKernel::queries).o)) << what << ": two runs differ";
    }
  }
}

// Samples whose tokens are all queries, in so few tiles that several blocks share out the keys of each.
TEST_F(AttentionByPairsOnGpu, FewLongSamplesOfLargeHeads) {
  if (cuda::attention_device().major != 9) GTEST_SKIP() << "no Hopper here";
  const std::vector<PairsCase> cases{{.name = "one sample", .shape = {.lengths = {1300}, .targets = {100}}},
                                     {.name = "windows and contexts",
                                      .shape = {.lengths = {1100, 1030},
                                                .contexts = {5, 0},
                                                .targets = {0, 60},
                                                .mask = {.left = 300, .right = 0, .target_group = 2}}}};
  for (PairsCase c : cases) {
    c.shape.head_dim = 256, c.shape.gap = 8;
    PairsTest<__nv_bfloat16> test(c, ScoreFunction::silu);
    const PairsResult found = test.on_gpu(AttentionKernel::queries);
    expect_pairs(found.o, test.exact().o, 1.0 / 128, c.name);
    EXPECT_TRUE(same_bits(found.o, test.on_gpu(AttentionKernel::queries).o)) << c.name << ": two runs differ";
  }
}

TEST_F(AttentionByPairsOnGpu, DropoutOfWeights) {
  expect_types<float, __nv_bfloat16>({.name = "dropout", .shape = {.lengths = {130, 5, 64}}, .dropout = 0.4});
}

}  // namespace
}  // namespace hstu

#endif  // HSTU_WITH_CUDA
