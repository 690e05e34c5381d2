// The scratch memory of the GPU kernels. Its size is known without a GPU.
#ifdef HSTU_WITH_CUDA

#include <cstdint>
#include <random>

#include <gtest/gtest.h>

#include "hstu/attention/attention_cuda.h"
#include "hstu/attention/cuda/schedule.h"
#include "hstu/attention/route.h"

namespace hstu {
namespace {

constexpr int kRows = cuda::kBackwardTile;

AttentionProblem problem_of(std::int64_t samples, std::int64_t tokens, std::int64_t heads) {
  AttentionProblem p;
  p.samples = samples, p.tokens = tokens, p.heads = heads, p.head_dim = 128;
  for (AttentionInput* rows : {&p.q, &p.k, &p.v}) *rows = {nullptr, heads * 128, 128};
  return p;
}

// With one tile too few a block writes into the memory of another.
TEST(AttentionWorkspace, HasRoomForTheSumsOfEveryHeadOfSeveralTiles) {
  std::mt19937 random(5);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const int longest = repeat % 3 == 0 ? kRows + 1 : repeat % 3 == 1 ? 2 * kRows + 1 : 5000;
    const int shortest = repeat % 2 == 0 ? longest - 1 : 0;
    const std::int64_t samples = 1 + static_cast<std::int64_t>(random() % 40), heads = 1 + repeat % 5;
    std::int64_t tokens = 0, tiles = 0, shared = 0;
    for (std::int64_t b = 0; b < samples; ++b) {
      const int length =
          shortest + static_cast<int>(random() % static_cast<unsigned>(longest - shortest + 1));
      const int count = (length + kRows - 1) / kRows;
      tokens += length;
      tiles += count;
      if (count > 1) shared += count;
    }
    const AttentionProblem p = problem_of(samples, tokens, heads);
    ASSERT_GE(cuda::schedule_items(p, kRows), tiles * heads) << samples << " samples to " << longest;
    ASSERT_GE(cuda::shared_tiles(p, kRows), shared * heads) << samples << " samples to " << longest;
  }
}

// A caller may allocate once for its largest batch.
TEST(AttentionWorkspace, OfABatchIsEnoughForSmallerOnes) {
  const AttentionDevice hopper{9, 0, 132};
  const auto bytes_of = [&](std::int64_t samples, std::int64_t tokens, int head_dim) {
    AttentionProblem p = problem_of(samples, tokens, 4);
    p.head_dim = head_dim;
    return cuda::attention_workspace(p, choose_attention(p, hopper));
  };
  std::mt19937 random(6);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const int head_dim = 64 << repeat % 3;
    const auto samples = static_cast<std::int64_t>(1 + random() % 300);
    const auto tokens = static_cast<std::int64_t>(random() % (600 * static_cast<unsigned>(samples)));
    const std::int64_t fewer_samples = 1 + static_cast<std::int64_t>(random()) % samples;
    const std::int64_t fewer_tokens = static_cast<std::int64_t>(random()) % (tokens + 1);
    const cuda::AttentionWorkspace large = bytes_of(samples, tokens, head_dim),
                                   small = bytes_of(fewer_samples, fewer_tokens, head_dim);
    ASSERT_LE(small.forward, large.forward) << samples << " samples, " << tokens << " tokens";
    ASSERT_LE(small.backward, large.backward) << samples << " samples, " << tokens << " tokens";
  }
}

TEST(AttentionWorkspace, OfManyTinySamplesGoesByTheirTokens) {
  const AttentionProblem p = problem_of(70'000, 210'000, 4);
  const cuda::AttentionWorkspace bytes = cuda::attention_workspace(p, choose_attention(p, {9, 0, 132}));
  EXPECT_LT(bytes.backward, std::int64_t{1} << 30);  // 128 rows a sample and head would be 18 GB
}

}  // namespace
}  // namespace hstu
#endif
