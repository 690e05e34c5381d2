// The CPU form, the specification of all others, against the definition pair by pair.
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/brute_force.h"
#include "attention/host_problem.h"
#include "hstu/attention/attention.h"
#include "hstu/base/error.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

template <typename T>
AttentionGradients gradients_of(HostProblem<T>& host, HostResult<T>& result) {
  return {.d_o = host.query_row_view(host.d_o),
          .dq = host.query_row_view(result.dq),
          .dk = host.token_row_view(result.dk),
          .dv = host.token_row_view(result.dv)};
}

template <typename T>
HostResult<T> compute(HostProblem<T>& host) {
  HostResult<T> r{host.nan_memory(host.query_rows()), host.nan_memory(host.query_rows()),
                  host.nan_memory(host.tokens()), host.nan_memory(host.tokens())};
  const AttentionProblem p = host.problem();
  attention_forward(p, kHost, host.query_row_view(r.o));
  attention_backward(p, kHost, gradients_of(host, r));
  return r;
}

// Every element of the rows [begin, end) is near; everything else was not written.
template <typename T>
void expect_rows(const AttentionProblem& p, const AttentionInput& found, const std::vector<T>& memory,
                 const std::vector<double>& expected, std::int64_t begin, std::int64_t end, double tolerance,
                 const std::string& what) {
  std::int64_t written = 0;
  for (const T value : memory) written += std::isnan(value) ? 0 : 1;
  ASSERT_EQ(written, (end - begin) * p.heads * p.head_dim)
      << what << ": as many elements as the samples have";
  for (std::int64_t t = begin; t < end; ++t) {
    for (std::int64_t head = 0; head < p.heads; ++head) {
      for (std::int64_t d = 0; d < p.head_dim; ++d) {
        const double value = expected[static_cast<std::size_t>((t * p.heads + head) * p.head_dim + d)];
        ASSERT_NEAR(element<T>(found, t, head, d), value, tolerance * (1 + std::abs(value)))
            << what << ", row " << t << ", head " << head << ", element " << d;
      }
    }
  }
}

template <typename T>
void expect_definition(const HostShape& shape, const std::string& name) {
  HostProblem<T> host(shape);
  const AttentionProblem p = host.problem();
  HostResult<T> found = compute(host);
  const BruteForce expected = brute_force<T>(p, host.query_row_view(host.d_o));
  const double tolerance = sizeof(T) == 4 ? 2e-4 : 1e-11;
  const std::int64_t tokens_begin = host.offsets().front(), tokens_end = host.offsets().back();
  expect_rows(p, host.query_row_view(found.o), found.o, expected.o, host.first_query(), host.last_query(),
              tolerance, name + ": o");
  expect_rows(p, host.query_row_view(found.dq), found.dq, expected.dq, host.first_query(), host.last_query(),
              tolerance, name + ": dq");
  expect_rows(p, host.token_row_view(found.dk), found.dk, expected.dk, tokens_begin, tokens_end, tolerance,
              name + ": dk");
  expect_rows(p, host.token_row_view(found.dv), found.dv, expected.dv, tokens_begin, tokens_end, tolerance,
              name + ": dv");
}

HostShape random_shape(std::mt19937& random, int longest) {
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  const auto window = [&] { return below(3) == 0 ? -1 : below(below(2) == 0 ? 6 : longest); };
  HostShape shape{.mask = {window(), below(2) == 0 ? 0 : window(), 1 + below(8)},
                  .heads = 1 + below(3),
                  .head_dim = 1 + below(9),
                  .gap = below(3),
                  .heads_apart = below(3) == 0,
                  .per_sample_scale = below(2) == 0,
                  .seed = static_cast<unsigned>(random())};
  const int samples = below(5), kind = below(4);
  const bool any_first = below(2) == 0, has_contexts = below(2) == 0, has_targets = below(2) == 0;
  for (int b = 0; b < samples; ++b) {
    const int n = below(4) == 0 ? 0 : below(longest + 1);
    shape.lengths.push_back(n);
    if (kind > 0) shape.queries.push_back(kind == 1 ? std::min(n, 1) : kind == 2 ? 0 : below(n + 1));
    if (kind > 0 && any_first) shape.first.push_back(below(n - shape.queries.back() + 1));
    if (has_contexts) shape.contexts.push_back(below(3) == 0 ? below(longest) - 2 : below(6));
    if (has_targets) shape.targets.push_back(below(3) == 0 ? below(longest) - 2 : below(12));
  }
  return shape;
}

// Sets the number of threads for a test. With one, thousands of small calls do not wait for each other.
class Threads {
 public:
  explicit Threads(int count) { set_threads(count); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_ = threads();
};

TEST(AttentionOnCpu, AgreesWithTheDefinitionForRandomMasksQueriesAndStrides) {
  const Threads one(1);
  std::mt19937 random(3);
  for (int i = 0; i < 600; ++i)
    expect_definition<double>(random_shape(random, 40), "case " + std::to_string(i));
  for (int i = 0; i < 60; ++i)
    expect_definition<float>(random_shape(random, 40), "fp32 case " + std::to_string(i));
}

// Blocks have 64 queries and 256 keys.
TEST(AttentionOnCpu, AgreesWithTheDefinitionAroundTheBordersOfBlocks) {
  std::mt19937 random(4);
  for (int i = 0; i < 40; ++i)
    expect_definition<double>(random_shape(random, 700), "case " + std::to_string(i));
  for (const std::vector<int>& queries : {std::vector<int>{}, {66, 64, 65, 5, 1}}) {
    const HostShape causal{.lengths = {63, 64, 65, 256, 320}};
    expect_definition<double>(causal, "causal");
    HostShape few{.lengths = {300, 64, 257, 5, 513}};
    few.queries = queries;
    expect_definition<double>(few, "few queries");
    few.mask.left = 100;
    expect_definition<double>(few, "few queries in a window");
  }
}

// dq, dk and dv are the derivatives of the sum of dO o O.
TEST(AttentionOnCpu, GradientsAreTheDifferencesOfTheForwardPass) {
  const Threads one(1);
  constexpr double kStep = 1e-5;
  const std::vector<HostShape> shapes{
      {.lengths = {6, 0, 4}},
      {.lengths = {7, 3}, .queries = {2, 1}},
      {.lengths = {9, 5}, .mask = {2, 1, 1}},
      {.lengths = {11, 8}, .contexts = {2, 3}, .targets = {4, 3}, .mask = {-1, 0, 2}},
      {.lengths = {11, 8}, .queries = {5, 0}, .contexts = {2, 3}, .targets = {4, 3}, .mask = {3, 0, 2}},
      {.lengths = {8}, .contexts = {8}, .targets = {1}, .mask = {-1, -1, 3}},
  };
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    HostProblem<double> host(shapes[i]);
    HostResult<double> gradients = compute(host);
    const auto loss = [&] {
      std::vector<double> o = host.memory(host.query_rows(), 0);
      attention_forward(host.problem(), kHost, host.query_row_view(o));
      double sum = 0;
      for (std::size_t x = 0; x < o.size(); ++x) sum += std::isnan(host.d_o[x]) ? 0 : o[x] * host.d_o[x];
      return sum;
    };
    for (const auto& [input, gradient] :
         {std::pair{&host.q, &gradients.dq}, {&host.k, &gradients.dk}, {&host.v, &gradients.dv}}) {
      for (std::size_t x = 0; x < input->size(); ++x) {
        if (std::isnan((*gradient)[x])) continue;  // of no sample
        const double value = (*input)[x];
        (*input)[x] = value + kStep;
        const double more = loss();
        (*input)[x] = value - kStep;
        const double less = loss();
        (*input)[x] = value;
        ASSERT_NEAR((*gradient)[x], (more - less) / (2 * kStep), 1e-8) << "shape " << i << ", element " << x;
      }
    }
  }
}

TEST(AttentionOnCpu, GivesTheSameBitsWithAnyNumberOfThreads) {
  const HostShape shape{.lengths = {300, 17, 0, 129, 64, 700},
                        .contexts = {3, 0, 0, 70, 1, 9},
                        .targets = {20, 2, 0, 10, 64, 30},
                        .mask = {200, 0, 3}};
  HostProblem<float> host(shape);
  const HostResult<float> one = [&] {
    const Threads threads(1);
    return compute(host);
  }();
  for (const int count : {2, 5}) {
    const Threads threads(count);
    const HostResult<float> many = compute(host);
    for (const auto member :
         {&HostResult<float>::o, &HostResult<float>::dq, &HostResult<float>::dk, &HostResult<float>::dv}) {
      EXPECT_EQ(
          std::memcmp((one.*member).data(), (many.*member).data(), (one.*member).size() * sizeof(float)), 0)
          << count << " threads";
    }
  }
}

TEST(AttentionOnCpu, AddsToGradientsOnlyWhereItIsAsked) {
  for (const HostShape& shape :
       {HostShape{.lengths = {300, 0, 5}},
        HostShape{.lengths = {70, 4}, .queries = {1, 0}, .contexts = {2, 1}, .mask = {9}}}) {
    HostProblem<double> host(shape);
    const HostResult<double> expected = compute(host);
    for (const bool dq : {false, true}) {
      for (const bool dkv : {false, true}) {
        HostResult<double> found{{},
                                 host.memory(host.query_rows(), 7),
                                 host.memory(host.tokens(), 7),
                                 host.memory(host.tokens(), 7)};
        AttentionGradients g = gradients_of(host, found);
        g.accumulate_dq = dq, g.accumulate_dkv = dkv;
        attention_backward(host.problem(), kHost, g);
        const auto expect = [](const std::vector<double>& all, const std::vector<double>& base, bool added) {
          for (std::size_t i = 0; i < all.size(); ++i) {
            const double value = std::isnan(base[i]) ? 7 : base[i] + (added ? 7 : 0);
            ASSERT_NEAR(all[i], value, 1e-12 * (1 + std::abs(value))) << "element " << i;
          }
        };
        expect(found.dq, expected.dq, dq);
        expect(found.dk, expected.dk, dkv);
        expect(found.dv, expected.dv, dkv);
      }
    }
  }
}

TEST(AttentionOnCpu, WithoutQueriesGivesZeroGradientsToKeysAndValues) {
  HostProblem<double> host({.lengths = {5, 70}, .queries = {0, 0}});
  const HostResult<double> found = compute(host);
  for (const std::vector<double>* all : {&found.dk, &found.dv}) {
    EXPECT_EQ(std::count(all->begin(), all->end(), 0.0), 75 * 2 * 5);
    EXPECT_EQ(std::count_if(all->begin(), all->end(), [](double x) { return std::isnan(x); }),
              static_cast<std::ptrdiff_t>(all->size()) - 75 * 2 * 5);
  }
}

TEST(AttentionOnCpu, WritesNothingForAnEmptyBatch) {
  HostProblem<double> host({});  // rows of no sample
  for (const bool has_offsets : {false, true}) {
    AttentionProblem p = host.problem();
    ASSERT_EQ(p.samples, 0);
    ASSERT_EQ(p.tokens, 5);
    if (!has_offsets) p.offsets = nullptr, p.sample_scale = nullptr;
    const std::vector<double> sevens = host.memory(p.tokens, 7.0);
    HostResult<double> found{sevens, sevens, sevens, sevens};
    attention_forward(p, kHost, host.query_row_view(found.o));
    attention_backward(p, kHost, gradients_of(host, found));
    EXPECT_EQ(found, (HostResult<double>{sevens, sevens, sevens, sevens}));
  }
}

// Not even a NaN crosses the border between two samples.
TEST(AttentionOnCpu, NothingLeaksAcrossSamples) {
  HostProblem<double> host({.lengths = {70, 40, 70}});
  const std::int64_t poisoned = host.offsets()[1] + 25, width = host.problem().k.row_stride;
  std::fill_n(host.k.begin() + poisoned * width, width, std::numeric_limits<double>::quiet_NaN());
  const HostResult<double> found = compute(host);
  for (std::int64_t t = host.offsets()[0]; t < host.offsets()[3]; ++t) {
    const bool is_neighbour = t < host.offsets()[1] || t >= host.offsets()[2];
    if (is_neighbour || t >= poisoned) {  // before it a block multiplies its masked zeros too
      ASSERT_EQ(std::isnan(found.o[static_cast<std::size_t>(t * width)]), !is_neighbour) << "row " << t;
    }
  }
}

TEST(AttentionOnCpu, TheFutureDoesNotChangeThePast) {
  HostProblem<double> host({.lengths = {70}});
  const std::vector<double> before = compute(host).o;
  const std::int64_t changed = host.offsets()[0] + 41, width = host.problem().k.row_stride;
  for (std::int64_t i = 0; i < width; ++i) host.k[static_cast<std::size_t>(changed * width + i)] += 3;
  const std::vector<double> after = compute(host).o;
  const std::size_t begin = static_cast<std::size_t>(host.offsets()[0] * width),
                    end = static_cast<std::size_t>(changed * width);
  for (std::size_t i = begin; i < end; ++i)
    ASSERT_TRUE(before[i] == after[i] || (std::isnan(before[i]) && std::isnan(after[i]))) << i;
  EXPECT_NE(before[end], after[end]);
}

// What is far outside every window costs nothing: it is not even read.
TEST(AttentionOnCpu, BlocksThatNoQuerySeesAreNotRead) {
  HostProblem<double> host({.lengths = {1100}, .contexts = {2}, .mask = {10, 0}});
  const std::int64_t width = host.problem().k.row_stride;
  std::fill_n(host.k.begin() + (host.offsets()[0] + 300) * width, 200 * width,
              std::numeric_limits<double>::quiet_NaN());
  const HostResult<double> found = compute(host);
  EXPECT_TRUE(std::isnan(found.o[static_cast<std::size_t>((host.offsets()[0] + 400) * width)]));
  for (const std::int64_t token : {5, 200, 600, 1099})
    EXPECT_FALSE(std::isnan(found.o[static_cast<std::size_t>((host.offsets()[0] + token) * width)])) << token;
}

TEST(AttentionOnCpu, RefusesWhatItCannotCompute) {
  HostProblem<float> host({.lengths = {4, 3}, .queries = {2, 1}});
  const auto refusal = [&](auto change) -> std::string {
    AttentionProblem p = host.problem();
    std::vector<float> o = host.memory(host.query_rows(), 0);
    AttentionRows rows = host.query_row_view(o);
    change(p, rows);
    try {
      attention_forward(p, kHost, rows);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  std::vector<std::int64_t> falling{4, 2, 7}, too_many{0, 5, 6}, negative{-1, 2, 7};
  EXPECT_EQ(refusal([](auto&, auto&) {}), "none");
  EXPECT_THAT(refusal([](auto& p, auto&) { p.type = AttentionType::bf16; }), HasSubstr("fp32 and fp64"));
  EXPECT_THAT(refusal([&](auto& p, auto&) { p.offsets = falling.data(); }),
              HasSubstr("offsets must not decrease, found offsets[0] = 4 and offsets[1] = 2"));
  EXPECT_THAT(refusal([&](auto& p, auto&) { p.offsets = negative.data(); }),
              HasSubstr("offsets[0] must not be negative, found -1"));
  EXPECT_THAT(refusal([&](auto& p, auto&) { p.query_offsets = too_many.data(); }),
              HasSubstr("sample 0 has 5 queries but 4 tokens"));
  EXPECT_THAT(refusal([](auto& p, auto&) { p.tokens = 8; }), HasSubstr("offsets[2] is 9, but tokens is 8"));
  EXPECT_THAT(refusal([](auto& p, auto&) { p.longest = 3; }),
              HasSubstr("sample 0 has 4 tokens, but longest is 3"));
  EXPECT_THAT(refusal([](auto& p, auto&) { p.k.row_stride = 0; }),
              HasSubstr("k: the CPU needs a row stride of at least the head size 5, found 0"));
  EXPECT_THAT(refusal([](auto&, auto& o) { o.head_stride = 4; }), HasSubstr("o: rows share memory"));
}

}  // namespace
}  // namespace hstu
