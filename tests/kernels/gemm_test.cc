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
  gemm(Gemm<double>{.m = c.m,
                    .n = c.n,
                    .k = c.k,
                    .alpha = 0.5,
                    .a = {a.data(), c.op_a == Op::none ? c.k : c.m, c.op_a},
                    .b = {b.data(), c.op_b == Op::none ? c.n : c.k, c.op_b},
                    .beta = beta,
                    .c = result.data(),
                    .stride_c = c.n},
       HostStream());
  return result;
}

class MatrixProduct : public testing::TestWithParam<Case> {};

// Shapes on both sides of every tile border; products along k in one piece and in several.
TEST_P(MatrixProduct, AgreesWithPlainLoopsAndHasTheSameBitsWithAnyNumberOfThreads) {
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
    Shapes, MatrixProduct,
    testing::Values(Case{1, 1, 1, Op::none, Op::none}, Case{257, 513, 3, Op::none, Op::transpose},
                    Case{2100, 5, 7, Op::none, Op::none}, Case{9, 11, 2500, Op::transpose, Op::none},
                    Case{3, 600, 2048, Op::transpose, Op::transpose}, Case{0, 4, 4, Op::none, Op::none}));

TEST(MatrixProduct, BetaZeroOverwritesWhateverStoodThere) {
  const std::vector<double> a(2049, 1.0), b(2049, 1.0);
  double c = std::numeric_limits<double>::quiet_NaN();
  gemm(
      Gemm<double>{
          .m = 1, .n = 1, .k = 2049, .a = {a.data(), 2049}, .b = {b.data(), 1}, .c = &c, .stride_c = 1},
      HostStream());
  EXPECT_EQ(c, 2049.0);
}

}  // namespace
}  // namespace hstu::kernels
