// What computes a softmax on GPUs.
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/routed_problem.h"
#include "hstu/attention/route.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

TEST(AttentionRoute, ASoftmaxRunsOnTensorCoresWhereTheyComputeIt) {
  static float log_sums[1] = {};
  static const float table[1] = {};
  static const std::int64_t offsets[2] = {};
  AttentionProblem p;
  p.type = AttentionType::bf16, p.samples = 1, p.tokens = 10'000, p.heads = 2, p.head_dim = 64,
  p.offsets = offsets;
  p.score = ScoreFunction::softmax, p.log_sums = log_sums;
  const AttentionDevice hopper{9, 0, 132}, ampere{8, 0, 108};
  for (const int head_dim : {32, 64, 128}) {
    p.head_dim = head_dim;
    EXPECT_EQ(choose_attention(p, hopper).forward, AttentionKernel::hopper);
    EXPECT_EQ(choose_attention(p, hopper).backward, AttentionKernel::hopper);
    EXPECT_EQ(choose_attention(p, ampere).forward, AttentionKernel::mma);
    EXPECT_EQ(choose_attention(p, ampere).backward, AttentionKernel::mma);
    EXPECT_EQ(choose_attention(p, {7, 5, 40}).forward, AttentionKernel::softmax);
  }
  p.mask.hidden_period = 3;
  EXPECT_EQ(choose_attention(p, hopper).backward, AttentionKernel::hopper);
  AttentionProblem dropping = p;
  dropping.dropout.rate = 0.1;
  EXPECT_EQ(choose_attention(dropping, hopper).forward, AttentionKernel::hopper);
  EXPECT_EQ(choose_attention(dropping, hopper).backward, AttentionKernel::hopper);
  EXPECT_EQ(choose_attention(dropping, ampere).forward, AttentionKernel::softmax);
  EXPECT_THAT(choose_attention(dropping, ampere).why, ::testing::HasSubstr("dropout, which on tensor cores"));
  dropping.kernels = AttentionChoice::mma;
  EXPECT_THROW(choose_attention(dropping, hopper), UsageError);
  dropping.kernels = AttentionChoice::hopper, dropping.score = ScoreFunction::silu;
  EXPECT_THROW(choose_attention(dropping, hopper), UsageError);
  AttentionProblem inference = p;
  inference.log_sums = nullptr;
  EXPECT_EQ(choose_attention(inference, hopper).forward, AttentionKernel::hopper);
  EXPECT_EQ(choose_attention(inference, hopper).backward, AttentionKernel::softmax);
  const std::pair<const char*, void (*)(AttentionProblem&)> others[] = {
      {"head size 256, more than 128", [](AttentionProblem& x) { x.head_dim = 256; }},
      {"head size 96 is none of", [](AttentionProblem& x) { x.head_dim = 96; }},
      {"alpha -1, which is not above 0", [](AttentionProblem& x) { x.alpha = -1; }},
      {"alpha 0, which is not above 0", [](AttentionProblem& x) { x.alpha = 0; }},
      {"fp32 has no tensor core route", [](AttentionProblem& x) { x.type = AttentionType::fp32; }},
      {"cached keys", [](AttentionProblem& x) { x.past = any_past(); }},
      {"query offsets", [](AttentionProblem& x) { x.query_offsets = offsets; }},
      {"a relative bias", [](AttentionProblem& x) { x.bias.position_table = table, x.bias.positions = 1; }}};
  for (const auto& [words, change] : others) {
    AttentionProblem other = p;
    change(other);
    EXPECT_EQ(choose_attention(other, hopper).forward, AttentionKernel::softmax) << words;
    EXPECT_THAT(choose_attention(other, hopper).why, ::testing::HasSubstr(words));
    for (const AttentionChoice choice : {AttentionChoice::hopper, AttentionChoice::mma}) {
      other.kernels = choice;
      EXPECT_THROW(choose_attention(other, hopper), UsageError) << words;
    }
  }
}

}  // namespace
}  // namespace hstu
