// What computes cached keys, hidden keys, dropout and stable rows on GPUs.
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/routed_problem.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

// What the kernels that work pair by pair compute, by either function of the scores.
constexpr void (*kByPairs[])(AttentionProblem&) = {
    [](AttentionProblem& p) { p.score = ScoreFunction::softmax; },
    [](AttentionProblem& p) { p.mask.hidden_period = 3; }, [](AttentionProblem& p) { p.past = any_past(); },
    [](AttentionProblem& p) { p.dropout.rate = 0.5; }};

TEST(AttentionRoute, WhatIsComputedPairByPairHasAKernelOfItsOwn) {
  static const float table[3] = {};
  static const std::int64_t offsets[2] = {};
  for (const AttentionDevice device : {kHopper, AttentionDevice{8, 0, 108}, AttentionDevice{7, 5, 40}}) {
    for (const AttentionType type : {AttentionType::bf16, AttentionType::fp32}) {
      for (const bool few : {false, true}) {
        AttentionProblem all;
        all.type = type, all.samples = 1, all.heads = 2, all.head_dim = 64, all.offsets = offsets;
        all.tokens = all.queries = 64'000;
        if (few) all.query_offsets = offsets;
        for (const bool biased : {false, true}) {
          if (biased) all.bias.position_table = table, all.bias.positions = 2;
          AttentionProblem together = all;
          for (const auto change : kByPairs) {
            AttentionProblem p = all;
            change(p), change(together);
            if (p.score == ScoreFunction::silu || biased) {
              EXPECT_EQ(choose_attention(p, device).forward, AttentionKernel::softmax);
            }
            p.kernels = AttentionChoice::plain;
            EXPECT_EQ(choose_attention(p, device).backward, AttentionKernel::softmax);
          }
          EXPECT_EQ(choose_attention(together, device).backward, AttentionKernel::softmax);
        }
      }
    }
  }
}

// Trap: a kernel that does not know a field of the problem leaves it out in silence.
TEST(AttentionRoute, WhatNoKernelForGpusComputesIsRefusedByName) {
  static const float table[3] = {};
  static const std::int64_t offsets[2] = {};
  const std::pair<const char*, void (*)(AttentionProblem&)> refused[] = {
      {"hidden keys", [](AttentionProblem& p) { p.row_stable = true, p.mask.hidden_period = 3; }},
      {"dropout", [](AttentionProblem& p) { p.row_stable = true, p.dropout.rate = 0.1; }},
      {"attention = \"hopper\": query offsets with a relative bias",
       [](AttentionProblem& p) {
         p.kernels = AttentionChoice::hopper, p.query_offsets = offsets;
         p.bias.position_table = table, p.bias.positions = 2;
       }},
      {"attention = \"mma\": the mma kernels do not compute hidden keys; use auto",
       [](AttentionProblem& p) { p.kernels = AttentionChoice::mma, p.mask.hidden_period = 3; }}};
  for (const AttentionDevice device : {kHopper, AttentionDevice{8, 0, 108}}) {
    for (const auto& [words, change] : refused) {
      AttentionProblem p = routed_problem();
      EXPECT_NO_THROW(choose_attention(p, device));
      change(p);
      try {
        choose_attention(p, device);
        ADD_FAILURE() << words;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(words));
      }
      p.type = AttentionType::fp32, p.kernels = AttentionChoice::automatic;
      EXPECT_EQ(choose_attention(p, kHost).forward, AttentionKernel::cpu) << words;
    }
  }
}

// Whatever the sizes: a choice by the number of rows would change the bits of a row.
TEST(AttentionRoute, StableRowsAreComputedOneByOneOnEveryGpu) {
  static const std::int64_t offsets[2] = {};
  for (const AttentionDevice device : {AttentionDevice{9, 0, 132}, {8, 0, 108}, {7, 5, 40}}) {
    for (const AttentionType type : {AttentionType::bf16, AttentionType::fp32}) {
      for (const std::int64_t tokens : {1, 100, 100'000}) {
        AttentionProblem p;
        p.type = type, p.samples = 1, p.tokens = tokens, p.heads = 2, p.head_dim = 64, p.offsets = offsets;
        const AttentionRoute before = choose_attention(p, device);
        p.row_stable = true;
        const AttentionRoute route = choose_attention(p, device);
        EXPECT_EQ(route.forward, AttentionKernel::single_rows);
        EXPECT_EQ(route.forward_cluster, 1);
        EXPECT_EQ(route.backward, before.backward);
        p.mask.hidden_period = 3;
        EXPECT_THROW(choose_attention(p, device), Error);
      }
    }
  }
}

TEST(AttentionRoute, ManyQueriesAndCachedKeysGoToTilesOfQueriesOnHopper) {
  const std::vector<std::int64_t> query_offsets{0, 16, 32, 48, 64};
  AttentionProblem p = routed_problem();
  p.query_offsets = query_offsets.data(), p.queries = 64;
  EXPECT_EQ(choose_attention(p, kHopper).forward, AttentionKernel::queries);
  EXPECT_EQ(choose_attention(p, kHopper).backward, AttentionKernel::few_queries);
  EXPECT_EQ(choose_attention(p, kAmpere).forward, AttentionKernel::few_queries);
  p.queries = 63;
  EXPECT_EQ(choose_attention(p, kHopper).forward, AttentionKernel::few_queries);
  AttentionProblem cached = routed_problem();
  cached.tokens = 100'000, cached.past = any_past();
  EXPECT_EQ(choose_attention(cached, kHopper).forward, AttentionKernel::softmax) << "pages of one token";
  cached.past.page_tokens = 24;
  EXPECT_EQ(choose_attention(cached, kHopper).forward, AttentionKernel::queries);
  EXPECT_EQ(choose_attention(cached, kHopper).backward, AttentionKernel::softmax);
  EXPECT_EQ(choose_attention(cached, kAmpere).forward, AttentionKernel::softmax);
  cached.mask.left = 100;
  EXPECT_EQ(choose_attention(cached, kHopper).forward, AttentionKernel::softmax);
}

TEST(AttentionRoute, FewQueriesAndCachedKeysAreComputedRowByRow) {
  static const float table[3] = {};
  static const std::int64_t offsets[5] = {};
  AttentionProblem cached = routed_problem();
  cached.past = any_past();
  cached.tokens = 100'000, cached.query_offsets = offsets, cached.queries = 63;
  for (const AttentionDevice device : {kHopper, kAmpere}) {
    AttentionProblem p = cached;
    EXPECT_EQ(choose_attention(p, device).forward, AttentionKernel::single_rows);
    EXPECT_EQ(choose_attention(p, device).backward, AttentionKernel::softmax);
    p.queries = 8 * device.multiprocessors;  // of four heads
    EXPECT_EQ(choose_attention(p, device).forward, AttentionKernel::single_rows);
    ++p.queries;
    EXPECT_EQ(choose_attention(p, device).forward, AttentionKernel::softmax);
    p.samples = p.queries / 15;
    EXPECT_EQ(choose_attention(p, device).forward, AttentionKernel::single_rows);
    p.queries = 63, p.bias.position_table = table, p.bias.positions = 2, p.score = ScoreFunction::softmax;
    EXPECT_EQ(choose_attention(p, device).forward, AttentionKernel::single_rows);
    p.mask.hidden_period = 3;
    EXPECT_EQ(choose_attention(p, device).forward, AttentionKernel::softmax);
  }
}

}  // namespace
}  // namespace hstu
