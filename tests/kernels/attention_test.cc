// The blocked attention against four plain loops, over lengths on both sides of every block border.
#include "hstu/kernels/attention.h"

#include <cmath>
#include <limits>
#include <ostream>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/base/threads.h"
#include "hstu/kernels/math.h"

namespace hstu::kernels {
namespace {

struct Case {
  std::vector<std::int64_t> lengths;
  std::int64_t queries;  // the last tokens of each sample; -1 for all
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << "lengths";
  for (const std::int64_t length : c.lengths) *out << ' ' << length;
  *out << ", queries " << c.queries;
}

struct Data {
  explicit Data(const Case& c, std::int64_t heads_ = 2, std::int64_t head_dim_ = 4)
      : heads(heads_), head_dim(head_dim_) {
    RandomStream random{7};
    offsets = query_offsets = {0};
    for (const std::int64_t length : c.lengths) {
      offsets.push_back(offsets.back() + length);
      query_offsets.push_back(query_offsets.back() + (c.queries < 0 ? length : std::min(c.queries, length)));
      scale.push_back(0.5 + random.uniform());
    }
    const std::int64_t width = heads * head_dim;
    for (auto* values : {&q, &d_o}) values->resize(static_cast<std::size_t>(query_offsets.back() * width));
    vk.resize(static_cast<std::size_t>(offsets.back() * 2 * width));
    for (auto* values : {&q, &d_o, &vk}) {
      for (double& value : *values) value = random.normal();
    }
  }
  AttentionProblem<double> problem() const {
    return {static_cast<std::int64_t>(scale.size()),
            heads,
            head_dim,
            offsets.data(),
            query_offsets.data(),
            0.6,
            scale.data(),
            q.data(),
            vk.data(),
            vk.empty() ? nullptr : vk.data() + heads * head_dim};
  }
  std::int64_t heads, head_dim;
  std::vector<std::int64_t> offsets, query_offsets;
  std::vector<double> scale, q, vk, d_o;
};

struct Result {
  std::vector<double> o, dq, dvk;
};

Result blocked(const Data& d) {
  Result r{std::vector<double>(d.q.size()), std::vector<double>(d.q.size(), 1.0),
           std::vector<double>(d.vk.size(), 2.0)};
  attention(d.problem(), r.o.data());
  attention_backward(d.problem(), d.d_o.data(), 0.0, r.dq.data(), 0.0, r.dvk.data());
  return r;
}

Result plain(const Data& d) {
  Result r{std::vector<double>(d.q.size()), std::vector<double>(d.q.size()),
           std::vector<double>(d.vk.size())};
  const std::int64_t width = d.heads * d.head_dim;
  const auto p = d.problem();
  for (std::int64_t b = 0; b < p.samples; ++b) {
    const std::int64_t tokens = d.offsets[b + 1] - d.offsets[b],
                       queries = d.query_offsets[b + 1] - d.query_offsets[b];
    for (std::int64_t h = 0; h < d.heads; ++h) {
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t qi = (d.query_offsets[b] + i) * width + h * d.head_dim;
        for (std::int64_t j = 0; j <= tokens - queries + i; ++j) {
          const std::int64_t vj = (d.offsets[b] + j) * 2 * width + h * d.head_dim, kj = vj + width;
          double dot = 0, da = 0;
          for (std::int64_t c = 0; c < d.head_dim; ++c) {
            dot += d.q[qi + c] * d.vk[kj + c];
            da += d.d_o[qi + c] * d.vk[vj + c];
          }
          const double s = p.alpha * dot, sigma = 1 / (1 + std::exp(-s));
          const double ds = da * sigma * (1 + s * (1 - sigma)) * p.scale[b];
          for (std::int64_t c = 0; c < d.head_dim; ++c) {
            r.o[qi + c] += s * sigma * p.scale[b] * d.vk[vj + c];
            r.dvk[vj + c] += s * sigma * p.scale[b] * d.d_o[qi + c];
            r.dq[qi + c] += p.alpha * ds * d.vk[kj + c];
            r.dvk[kj + c] += p.alpha * ds * d.q[qi + c];
          }
        }
      }
    }
  }
  return r;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 1e-11 * (1 + std::abs(expected[i]))) << what << " element " << i;
  }
}

class BlockedAttention : public testing::TestWithParam<Case> {};

TEST_P(BlockedAttention, AgreesWithPlainLoops) {
  const Data data(GetParam());
  const Result found = blocked(data), expected = plain(data);
  expect_near(found.o, expected.o, "o");
  expect_near(found.dq, expected.dq, "dq");
  expect_near(found.dvk, expected.dvk, "dvk");
}

INSTANTIATE_TEST_SUITE_P(Lengths, BlockedAttention,
                         testing::Values(Case{{0}, -1}, Case{{1}, -1}, Case{{63, 64, 65}, -1},
                                         Case{{0, 300, 1, 0, 257}, -1}, Case{{256, 320, 5}, -1},
                                         Case{{0, 1, 300, 64}, 1}, Case{{300, 70, 2}, 66}));

TEST(BlockedAttention, GivesTheSameBitsWithAnyNumberOfThreads) {
  const Data data(Case{{300, 17, 0, 129, 64}, -1});
  const int before = threads();
  set_threads(1);
  const Result one = blocked(data);
  set_threads(3);
  const Result three = blocked(data);
  set_threads(before);
  EXPECT_EQ(one.o, three.o);
  EXPECT_EQ(one.dq, three.dq);
  EXPECT_EQ(one.dvk, three.dvk);
}

// Not even a NaN crosses the border between two samples.
TEST(BlockedAttention, NothingLeaksAcrossSamples) {
  Data data(Case{{70, 40, 70}, -1});
  const std::int64_t width = data.heads * data.head_dim, poisoned = 70 + 25;
  for (std::int64_t c = 0; c < 2 * width; ++c) {
    data.vk[static_cast<std::size_t>(poisoned * 2 * width + c)] = std::numeric_limits<double>::quiet_NaN();
  }
  const std::vector<double> o = blocked(data).o;
  for (std::int64_t t = 0; t < 180; ++t) {
    const bool neighbour = t < 70 || t >= 110;
    if (!neighbour && t < poisoned) continue;  // a block multiplies its masked zeros too
    for (std::int64_t c = 0; c < width; ++c) {
      ASSERT_EQ(std::isnan(o[static_cast<std::size_t>(t * width + c)]), !neighbour) << "token " << t;
    }
  }
}

TEST(BlockedAttention, TheFutureDoesNotChangeThePast) {
  Data data(Case{{70}, -1});
  const std::vector<double> before = blocked(data).o;
  const std::int64_t width = data.heads * data.head_dim, changed = 41;
  for (std::int64_t c = 0; c < 2 * width; ++c)
    data.vk[static_cast<std::size_t>(changed * 2 * width + c)] += 3;
  const std::vector<double> after = blocked(data).o;
  for (std::int64_t i = 0; i < changed * width; ++i) {
    ASSERT_EQ(before[static_cast<std::size_t>(i)], after[static_cast<std::size_t>(i)]);
  }
  EXPECT_NE(before.back(), after.back());
}

TEST(Exp, FloatIsRightToThreePartsInTenMillionAndKeepsNan) {
  for (double x = -86; x < 87; x += 0.00037) {
    const float value = kernels::exp(static_cast<float>(x));
    const double expected = std::exp(static_cast<double>(static_cast<float>(x)));
    ASSERT_NEAR(value, expected, 3e-7 * expected) << x;
  }
  EXPECT_TRUE(std::isnan(kernels::exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(kernels::sigmoid(1000.0f), 1.0f);
  EXPECT_LT(kernels::sigmoid(-1000.0f), 1e-37f);
}

}  // namespace
}  // namespace hstu::kernels
