// What only the CPU computes of attention: softmax, a relative bias, cached keys, hidden keys.
#include <cmath>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/host_problem.h"
#include "attention/sees.h"
#include "hstu/attention/attention.h"
#include "hstu/attention/attention_pairs.h"
#include "hstu/base/error.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<double>;

constexpr std::int64_t kPositions = 4, kBuckets = 3;

// A problem in fp64 with tables and times.
struct Case {
  explicit Case(const HostShape& shape, bool of_heads = false)
      : host(shape), tables(of_heads ? shape.heads : 1) {
    std::mt19937 random(shape.seed);
    std::normal_distribution<double> normal;
    position.resize(static_cast<std::size_t>(tables * (2 * kPositions - 1)));
    time.resize(static_cast<std::size_t>(tables * (kBuckets + 1)));
    for (Values* table : {&position, &time})
      for (double& x : *table) x = normal(random);
    for (std::int64_t t = 0; t < host.tokens(); ++t)
      key_time.push_back(static_cast<std::int64_t>(random() % 40));
    for (std::int64_t t = 0; t < host.query_rows(); ++t)
      query_time.push_back(static_cast<std::int64_t>(random() % 40));
  }
  AttentionProblem problem(ScoreFunction score, bool biased) {
    AttentionProblem p = host.problem();
    p.score = score;
    if (biased) {
      p.bias = {.position_table = position.data(),
                .time_table = time.data(),
                .tables = tables,
                .positions = kPositions,
                .buckets = kBuckets,
                .thresholds = thresholds.data(),
                .query_time = query_time.data(),
                .key_time = key_time.data()};
    }
    return p;
  }

  HostProblem<double> host;
  std::int64_t tables;
  Values position, time;
  std::vector<std::int64_t> thresholds{2, 9, 20}, key_time, query_time;
};

struct Result {
  Values o, dq, dk, dv, d_position, d_time;
};

Result compute(Case& c, const AttentionProblem& p) {
  HostProblem<double>& host = c.host;
  Result r{host.memory(host.query_rows(), 0), host.memory(host.query_rows(), 0),
           host.memory(host.tokens(), 0),     host.memory(host.tokens(), 0),
           Values(c.position.size()),         Values(c.time.size())};
  attention_forward(p, kHost, host.query_row_view(r.o));
  attention_backward(p, kHost,
                     {.d_o = host.query_row_view(host.d_o),
                      .dq = host.query_row_view(r.dq),
                      .dk = host.token_row_view(r.dk),
                      .dv = host.token_row_view(r.dv),
                      .d_position_table = p.bias.position_table == nullptr ? nullptr : r.d_position.data(),
                      .d_time_table = p.bias.time_table == nullptr ? nullptr : r.d_time.data()});
  return r;
}

// The sum of dO o O, whose gradients the backward pass gives.
double loss(Case& c, const AttentionProblem& p) {
  Values o = c.host.memory(c.host.query_rows(), 0);
  attention_forward(p, kHost, c.host.query_row_view(o));
  double sum = 0;
  for (std::size_t i = 0; i < o.size(); ++i)
    if (!std::isnan(c.host.d_o[i])) sum += o[i] * c.host.d_o[i];
  return sum;
}

void expect_differences(Case& c, const AttentionProblem& p, Values& input, const Values& gradient,
                        const char* name) {
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (std::isnan(input[i])) continue;
    const double value = input[i];
    input[i] = value + kStep;
    const double after = loss(c, p);
    input[i] = value - kStep;
    const double before = loss(c, p);
    input[i] = value;
    ASSERT_NEAR(gradient[i], (after - before) / (2 * kStep), 1e-7) << name << ", element " << i;
  }
}

HostShape shape_of(unsigned seed) {
  return {.lengths = {5, 0, 7, 1},
          .queries = seed % 2 == 0 ? std::vector<int>{} : std::vector<int>{2, 0, 7, 1},
          .contexts = {1, 0, 2, 0},
          .targets = {2, 0, 0, 1},
          .mask = {seed % 3 == 0 ? 3 : -1, seed % 4 == 3 ? -1 : 0, 2, seed % 2 == 0 ? 0 : 3, 1},
          .head_dim = 3,
          .seed = seed};
}

TEST(AttentionByPairs, GradientsAreDifferencesOfTheForwardPass) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
      for (const bool biased : {false, true}) {
        SCOPED_TRACE(
            fmt::format("seed {} softmax {} biased {}", seed, score == ScoreFunction::softmax, biased));
        Case c(shape_of(seed), seed > 2);
        const AttentionProblem p = c.problem(score, biased);
        const Result r = compute(c, p);
        expect_differences(c, p, c.host.q, r.dq, "q");
        expect_differences(c, p, c.host.k, r.dk, "k");
        expect_differences(c, p, c.host.v, r.dv, "v");
        if (!biased) continue;
        expect_differences(c, p, c.position, r.d_position, "position table");
        expect_differences(c, p, c.time, r.d_time, "time table");
      }
    }
  }
}

TEST(AttentionByPairs, IsTheBlockedFormWhereBothCompute) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    HostShape shape = shape_of(seed);
    shape.mask.hidden_period = 0;
    HostProblem<double> host(shape);
    const AttentionProblem p = host.problem();
    Values blocked = host.memory(host.query_rows(), 0), pairs = blocked;
    attention_forward(p, kHost, host.query_row_view(blocked));
    cpu::attention_forward_by_pairs(p, host.query_row_view(pairs));
    for (std::size_t i = 0; i < blocked.size(); ++i) ASSERT_NEAR(pairs[i], blocked[i], 1e-13);
  }
}

// By the definition: one query, two keys it sees, and a third that is hidden from it.
TEST(AttentionByPairs, FollowsTheFormula) {
  HostShape shape{
      .lengths = {3}, .mask = {.hidden_period = 2, .hidden_phase = 0}, .heads = 1, .head_dim = 1, .gap = 0};
  Case c(shape);
  c.key_time.assign(c.key_time.size(), 0), c.query_time.assign(c.query_time.size(), 10);
  const AttentionProblem p = c.problem(ScoreFunction::softmax, true);
  const Result r = compute(c, p);
  const std::size_t first = 2;    // rows of no sample come before it
  const double bias = c.time[2];  // 10 is at or above 2 and 9
  // Token 2 sees itself and token 1, not token 0, which begins another period.
  const auto score = [&](std::size_t j, std::size_t distance) {
    return 0.6 * c.host.q[first + 2] * c.host.k[first + j] + c.position[kPositions - 1 - distance] + bias;
  };
  const double one = std::exp(score(1, 1)), own = std::exp(score(2, 0));
  const double expected =
      0.25 * c.host.scale()[0] * (one * c.host.v[first + 1] + own * c.host.v[first + 2]) / (one + own);
  EXPECT_NEAR(r.o[first + 2], expected, 1e-14);
}

// A hidden key begins a period: of the tokens 0 1 | 2 3 4 | 5 6 the keys 2 and 5 are seen up to tokens 4
// and 6.
TEST(AttentionByPairs, AHiddenKeyIsSeenFromItselfToTheNextOne) {
  Case c(HostShape{
      .lengths = {7}, .mask = {.hidden_period = 3, .hidden_phase = 2}, .heads = 1, .head_dim = 1, .gap = 0});
  const AttentionProblem p = c.problem(ScoreFunction::softmax, false);
  const std::size_t first = 2;  // rows of no sample come before it
  const Result before = compute(c, p);
  for (const std::size_t key : {2U, 5U}) {
    c.host.v[first + key] += 1;
    const Result after = compute(c, p);
    c.host.v[first + key] -= 1;
    for (std::size_t token = 0; token < 7; ++token)
      EXPECT_EQ(after.o[first + token] != before.o[first + token], token >= key && token < key + 3) << token;
  }
}

TEST(AttentionByPairs, CachedKeysAreKeysOfEarlierTokens) {
  constexpr int kPast = 5, kNew = 3, kPage = 2;
  HostShape whole_shape{
      .lengths = {kPast + kNew}, .queries = {kNew}, .contexts = {2}, .mask = {.left = 6}, .seed = 7};
  Case whole(whole_shape);
  for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
    AttentionProblem p = whole.problem(score, true);
    const Result expected = compute(whole, p);
    // The past in three pages, the last of which comes first in memory.
    const std::vector<std::int32_t> pages{1, 2, 0}, past_of{0};
    const std::vector<std::int64_t> page_offsets{0, 3}, lengths{kPast};
    const std::int64_t stride = p.k.row_stride, first = whole.host.offsets().front();
    Values k(static_cast<std::size_t>(6 * stride)), v(k.size());
    std::vector<std::int64_t> time(6);
    for (std::int64_t t = 0; t < kPast; ++t) {
      const std::int64_t to = pages[static_cast<std::size_t>(t / kPage)] * kPage + t % kPage;
      std::copy_n(whole.host.k.begin() + (first + t) * stride, stride, k.begin() + to * stride);
      std::copy_n(whole.host.v.begin() + (first + t) * stride, stride, v.begin() + to * stride);
      time[static_cast<std::size_t>(to)] = whole.key_time[static_cast<std::size_t>(first + t)];
    }
    const std::vector<std::int64_t> offsets{first + kPast, first + kPast + kNew};
    AttentionProblem cut = p;
    cut.offsets = offsets.data();
    cut.past = {.k = k.data(),
                .v = v.data(),
                .row_stride = stride,
                .head_stride = p.k.head_stride,
                .page_tokens = kPage,
                .pasts = 1,
                .pages = pages.data(),
                .page_offsets = page_offsets.data(),
                .lengths = lengths.data(),
                .past_of = past_of.data(),
                .time = time.data()};
    const Result found = compute(whole, cut);
    EXPECT_EQ(found.o, expected.o);
    EXPECT_EQ(found.dq, expected.dq);
    EXPECT_EQ(found.d_position, expected.d_position);
    const auto own = static_cast<std::ptrdiff_t>((first + kPast) * stride);
    EXPECT_TRUE(std::equal(found.dk.begin() + own, found.dk.end(), expected.dk.begin() + own));
    EXPECT_TRUE(std::equal(found.dv.begin() + own, found.dv.end(), expected.dv.begin() + own));
    const std::vector<std::int64_t> too_long{7};
    cut.past.lengths = too_long.data();
    EXPECT_THROW(compute(whole, cut), Error);
  }
}

// Trap: partial sums of the tables are added in the order in which threads end.
TEST(AttentionByPairs, HasTheSameBitsForAnyNumberOfThreads) {
  Case c({.lengths = {40, 31, 17, 60, 9}, .heads = 3, .head_dim = 8});
  const AttentionProblem p = c.problem(ScoreFunction::softmax, true);
  const int before = threads();
  set_threads(1);
  const Result one = compute(c, p);
  set_threads(4);
  const Result four = compute(c, p);
  set_threads(before);
  EXPECT_EQ(one.d_position, four.d_position);
  EXPECT_EQ(one.d_time, four.d_time);
  EXPECT_EQ(one.dk, four.dk);
}

// row_stable: the row of a query is the same in a batch and alone.
TEST(AttentionOnTheHost, ARowHasTheSameBitsBesideOthers) {
  for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
    HostShape shape{.lengths = {70, 300, 12}, .per_sample_scale = false};
    HostProblem<double> host(shape);
    AttentionProblem p = host.problem();
    p.score = score;
    p.row_stable = true;
    Values all = host.memory(host.query_rows(), 0), alone = all;
    attention_forward(p, kHost, host.query_row_view(all));
    // The last query of the second sample, as the only query.
    const std::vector<std::int64_t> offsets{host.offsets()[1], host.offsets()[2]},
        query_offsets{host.offsets()[2] - 1, host.offsets()[2]};
    p.samples = 1, p.offsets = offsets.data(), p.query_offsets = query_offsets.data(),
    p.queries = host.tokens();
    attention_forward(p, kHost, host.query_row_view(alone));
    const std::int64_t row = (host.offsets()[2] - 1) * host.query_row_view(all).row_stride;
    EXPECT_TRUE(std::equal(alone.begin() + row, alone.begin() + row + shape.heads * shape.head_dim,
                           all.begin() + row));
  }
}

TEST(AttentionByPairs, RefusesWhatContradictsItself) {
  Case c({.lengths = {4}});
  const auto refused = [&](const std::function<void(AttentionProblem&)>& change, const char* words) {
    AttentionProblem p = c.problem(ScoreFunction::silu, true);
    change(p);
    try {
      compute(c, p);
      ADD_FAILURE() << words;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  };
  refused([](AttentionProblem& p) { p.bias.tables = 3; }, "bias tables of 1 or 2 heads, found 3");
  refused([](AttentionProblem& p) { p.bias.positions = 0; }, "1 position or more");
  refused([](AttentionProblem& p) { p.bias.query_time = nullptr; }, "needs times of queries");
  refused([](AttentionProblem& p) { p.dropout.rate = 1; }, "rate of dropout in [0, 1), found 1");
  refused([](AttentionProblem& p) { p.mask.hidden_period = 2, p.mask.hidden_phase = 2; }, "hidden phase");
  refused([&](AttentionProblem& p) { p.past.k = c.host.k.data(); }, "cached keys need values");
}

}  // namespace
}  // namespace hstu
