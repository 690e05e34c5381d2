// Attention row by row on GPUs (cached keys, a softmax or SiLU, a relative bias) against the CPU form in
// fp64. The tests skip on machines without a GPU.
#ifdef HSTU_WITH_CUDA

#include <string>
#include <vector>

#include "attention/device_pairs.h"

namespace hstu {
namespace {

class AttentionByRowsOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  }
};

template <typename T>
void expect_rows_as_on_cpu(PairsCase c, ScoreFunction score, AttentionKernel kernel, bool row_stable) {
  for (const int head_dim : {8, 25, 32, 64, 128, 256}) {
    for (const int gap : {3, 8}) {  // rows that are read one element and 16 bytes at a time
      c.shape.head_dim = head_dim, c.shape.gap = gap;
      const std::string what = fmt::format("{}, {} bytes, head size {}, softmax {}", c.name, sizeof(T),
                                           head_dim, score == ScoreFunction::softmax);
      PairsTest<T> test(c, score);
      const PairsResult found = test.on_gpu(kernel, row_stable);
      expect_pairs(found.o, test.exact().o, sizeof(T) == 4 ? 1e-4 : 1.0 / 256, what);
      EXPECT_TRUE(same_bits(found.o, test.on_gpu(kernel, row_stable).o)) << what << ": two runs differ";
    }
  }
}

TEST_F(AttentionByRowsOnGpu, FewQueriesOfCachedKeys) {
  const PairsCase cached{.name = "cached",
                         .shape = {.lengths = {6, 40, 1, 33, 3, 1},
                                   .queries = {1, 17, 1, 2, 0, 1},
                                   .contexts = {3, 1, 0, 0, 1, 0},
                                   .targets = {1, 4, 0, 1, 0, 1},
                                   .mask = {.left = 600, .right = 0, .target_group = 3},
                                   .heads = 3},
                         .past = {50, 0, 7, 900},
                         .past_of = {2, -1, 0, 0, 1, 3}};
  for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
    for (const int tables : {0, 1, 2, 3}) {
      PairsCase c = cached;
      if (tables % 2 == 1) c.positions = 80;
      if (tables >= 2) c.buckets = 20;
      c.of_heads = tables == 3;
      c.name = fmt::format("cached, tables {}", tables);
      expect_rows_as_on_cpu<float>(c, score, AttentionKernel::single_rows, false);
      expect_rows_as_on_cpu<__nv_bfloat16>(c, score, AttentionKernel::single_rows, false);
    }
    PairsCase stable = cached;
    stable.positions = 80, stable.buckets = 20, stable.shape.queries.clear();
    expect_rows_as_on_cpu<float>(stable, score, AttentionKernel::single_rows, true);
    expect_rows_as_on_cpu<__half>(stable, score, AttentionKernel::single_rows, true);
  }
}

// Whatever is cached: the last tokens of a sample, with those before them in pages, beside the whole sample.
template <typename T>
void expect_the_bits_of_no_cache(ScoreFunction score, int head_dim) {
  constexpr int kPast = 131, kTokens = 40;
  PairsCase whole{.name = "whole",
                  .shape = {.lengths = {kPast + kTokens}, .head_dim = head_dim, .per_sample_scale = false},
                  .positions = 60,
                  .buckets = 30};
  PairsCase end = whole;
  end.shape.lengths = {kTokens}, end.past = {kPast}, end.past_of = {0};
  PairsTest<T> all(whole, score), last(end, score);
  last.become_the_end_of(all);
  const std::vector<double> expected = all.on_gpu(AttentionKernel::single_rows, true).o,
                            found = last.on_gpu(AttentionKernel::single_rows, true).o;
  for (int t = 0; t < kTokens; ++t)
    for (std::int64_t i = 0; i < all.width(); ++i)
      ASSERT_EQ(found[last.place_of(t) + static_cast<std::size_t>(i)],
                expected[all.place_of(kPast + t) + static_cast<std::size_t>(i)])
          << "token " << t << ", head size " << head_dim;
}

TEST_F(AttentionByRowsOnGpu, StableRowsHaveTheBitsOfNoCache) {
  for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
    for (const int head_dim : {8, 25, 64, 128, 256}) {
      expect_the_bits_of_no_cache<float>(score, head_dim);
      expect_the_bits_of_no_cache<__nv_bfloat16>(score, head_dim);
    }
  }
}

}  // namespace
}  // namespace hstu

#endif  // HSTU_WITH_CUDA
