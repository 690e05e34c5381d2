// How ranks divide the tokens of long samples, and which keys they give each other.
#include "hstu/model/query_runs.h"

#include <vector>

#include <gtest/gtest.h>

#include "hstu/comm/thread_group.h"
#include "hstu/tensor/context.h"

namespace hstu {
namespace {

TEST(TokenPieces, HaveEachTokenOnceAndAnEvenPartOfCausalPairs) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const std::int64_t tokens : {1, 2, 7, 64, 1000}) {
      const TokenPieces pieces{tokens, ranks};
      std::vector<int> seen(static_cast<std::size_t>(tokens));
      for (int r = 0; r < ranks; ++r) {
        std::int64_t pairs = 0;
        for (const int half : {0, 1}) {
          const TokenPieces::Range range = pieces.of(r, half);
          for (std::int64_t t = range.begin; t < range.end; ++t) {
            ++seen[static_cast<std::size_t>(t)];
            EXPECT_EQ(pieces.rank_of(t), r);
            pairs += t + 1;
          }
        }
        const auto even = static_cast<double>(tokens * (tokens + 1)) / 2 / ranks;
        EXPECT_NEAR(static_cast<double>(pairs), even, static_cast<double>(2 * tokens));
      }
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
    }
  }
}

// The rows that each of four ranks gets from the others, of a sample of 64 tokens in pieces of 8.
std::vector<std::int64_t> received(int rank, const AttentionMask& mask, std::int64_t contexts,
                                   std::int64_t wanted) {
  std::vector<std::int64_t> rows;
  run_ranks(4, [&](Communicator& world) {
    if (world.rank() != rank) return;
    StackTokens like;
    like.mask.mask = mask;
    const StackSample sample{.tokens = 64, .wanted = wanted, .contexts = contexts};
    rows = query_runs({sample}, wanted < 64, {world}, like, DType::f64, host_context()).keys.received;
  });
  return rows;
}

TEST(QueryRuns, GetTheKeysThatTheySee) {
  using Rows = std::vector<std::int64_t>;
  EXPECT_EQ(received(0, {}, 0, 64), (Rows{16, 16, 16, 16}));
  EXPECT_EQ(received(3, {}, 0, 64), (Rows{8, 8, 8, 16}));  // pieces 0 to 4
  EXPECT_EQ(received(0, {.left = 3}, 0, 64), (Rows{16, 3, 0, 0}));
  EXPECT_EQ(received(1, {.left = 3, .right = 2}, 0, 64), (Rows{5, 16, 5, 0}));
  EXPECT_EQ(received(0, {.left = 3}, 1, 64), (Rows{16, 16, 16, 16}));  // a context sees all
  EXPECT_EQ(received(0, {}, 0, 9), (Rows{16, 16, 16, 16}));
  EXPECT_EQ(received(1, {}, 0, 9), (Rows{8, 16, 16, 16}));  // the wanted token 55 alone
  EXPECT_EQ(received(2, {}, 0, 9), (Rows{0, 0, 0, 0}));
}

}  // namespace
}  // namespace hstu
