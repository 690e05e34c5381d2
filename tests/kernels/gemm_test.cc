#include "hstu/kernels/gemm.h"

#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/base/threads.h"

namespace hstu::kernels {
namespace {

struct Case {
  std::int64_t m, n, k;
  Op op_a, op_b;
};

std::vector<double> random_values(std::int64_t count, std::uint64_t seed) {
  RandomStream random{seed};
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = random.normal();
  return values;
}

std::vector<double> run(const Case& c, const std::vector<double>& a, const std::vector<double>& b,
                        std::vector<double> result, double beta) {
  gemm(c.op_a, c.op_b, c.m, c.n, c.k, 0.5, a.data(), c.op_a == Op::none ? c.k : c.m, b.data(),
       c.op_b == Op::none ? c.n : c.k, beta, result.data(), c.n);
  return result;
}

class Gemm : public testing::TestWithParam<Case> {};

// Shapes on both sides of every tile border; products along k in one piece and in several.
TEST_P(Gemm, AgreesWithPlainLoopsAndHasTheSameBitsWithAnyNumberOfThreads) {
  const Case& c = GetParam();
  const auto a = random_values(c.m * c.k, 1), b = random_values(c.k * c.n, 2),
             start = random_values(c.m * c.n, 3);
  const int before = threads();
  set_threads(1);
  const auto one = run(c, a, b, start, 2.0);
  set_threads(3);
  const auto three = run(c, a, b, start, 2.0);
  set_threads(before);
  EXPECT_EQ(one, three);
  for (std::int64_t i = 0; i < c.m; i += 1 + c.m / 17) {
    for (std::int64_t j = 0; j < c.n; j += 1 + c.n / 17) {
      double sum = 2.0 * start[static_cast<std::size_t>(i * c.n + j)];
      for (std::int64_t l = 0; l < c.k; ++l) {
        sum += 0.5 * a[static_cast<std::size_t>(c.op_a == Op::none ? i * c.k + l : l * c.m + i)] *
               b[static_cast<std::size_t>(c.op_b == Op::none ? l * c.n + j : j * c.k + l)];
      }
      ASSERT_NEAR(one[static_cast<std::size_t>(i * c.n + j)], sum, 1e-10) << i << ", " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Gemm,
    testing::Values(Case{1, 1, 1, Op::none, Op::none}, Case{257, 513, 3, Op::none, Op::transpose},
                    Case{2100, 5, 7, Op::none, Op::none}, Case{9, 11, 2500, Op::transpose, Op::none},
                    Case{3, 600, 2048, Op::transpose, Op::transpose}, Case{0, 4, 4, Op::none, Op::none}));

TEST(Gemm, BetaZeroOverwritesWhateverStoodThere) {
  const std::vector<double> a(2049, 1.0), b(2049, 1.0);
  double c = std::numeric_limits<double>::quiet_NaN();
  gemm(Op::none, Op::none, 1, 1, 2049, 1.0, a.data(), 2049, b.data(), 1, 0.0, &c, 1);
  EXPECT_EQ(c, 2049.0);
}

}  // namespace
}  // namespace hstu::kernels
