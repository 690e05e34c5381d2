#include "hstu/kernels/loops.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/kernels/scratch.h"

namespace hstu::kernels {
namespace {

template <typename T>
std::vector<T> values(std::int64_t count, std::uint64_t seed) {
  RandomStream random{seed};
  std::vector<T> result(static_cast<std::size_t>(count));
  for (T& value : result) value = static_cast<T>(random.normal());
  return result;
}

struct Shape {
  std::int64_t m, n, k;
  bool a_transposed, b_transposed;
};

template <typename T>
std::vector<T> product(InstructionSet set, const Shape& s, bool from_start) {
  const auto a = values<T>(s.m * s.k, 1), b = values<T>(s.k * s.n, 2), start = values<T>(s.n, 3);
  const Scratch<T> packed(packed_size(s.k, s.n));
  std::vector<T> c(static_cast<std::size_t>(s.m * s.n), T(7));
  loops_of<T>(set).pack({.k = s.k,
                         .n = s.n,
                         .b = b.data(),
                         .stride = s.b_transposed ? s.k : s.n,
                         .transposed = s.b_transposed,
                         .packed = packed.data()});
  loops_of<T>(set).multiply({.m = s.m,
                             .n = s.n,
                             .k = s.k,
                             .a = a.data(),
                             .a_stride = s.a_transposed ? s.m : s.k,
                             .a_transposed = s.a_transposed,
                             .b = packed.data(),
                             .packed_rows = s.k,
                             .packed_columns = s.n,
                             .start = from_start ? start.data() : nullptr,
                             .c = c.data(),
                             .c_stride = s.n});
  return c;
}

template <typename T>
void expect_product(InstructionSet set, const Shape& s, double tolerance) {
  const auto a = values<T>(s.m * s.k, 1), b = values<T>(s.k * s.n, 2), start = values<T>(s.n, 3);
  const auto c = product<T>(set, s, true);
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = start[static_cast<std::size_t>(j)];
      for (std::int64_t l = 0; l < s.k; ++l) {
        sum += double{a[static_cast<std::size_t>(s.a_transposed ? l * s.m + i : i * s.k + l)]} *
               double{b[static_cast<std::size_t>(s.b_transposed ? j * s.k + l : l * s.n + j)]};
      }
      ASSERT_NEAR(c[static_cast<std::size_t>(i * s.n + j)], sum, tolerance) << i << ", " << j;
    }
  }
}

// Every number of rows and of vectors that a tile can have, and edges of all kinds.
constexpr Shape kShapes[] = {
    {1, 1, 1, false, false},    {7, 16, 40, false, false},  {50, 70, 33, true, false},
    {11, 64, 17, false, true},  {6, 48, 32, true, true},    {53, 200, 64, false, true},
    {4, 129, 20, false, false}, {99, 33, 100, true, false}, {3, 15, 19, false, true}};

TEST(Loops, ProductsAgreeWithPlainLoopsInEveryInstructionSet) {
  for (const auto& [word, set] : kInstructionSets) {
    if (!is_usable(set)) continue;
    for (const Shape& s : kShapes) {
      SCOPED_TRACE(testing::Message() << word << ": " << s.m << " x " << s.n << " x " << s.k);
      expect_product<float>(set, s, 1e-4);
      expect_product<double>(set, s, 1e-12);
    }
  }
}

template <typename T>
std::vector<T> norm(InstructionSet set, std::int64_t width) {
  constexpr std::int64_t kRows = 5;
  const auto x = values<T>(kRows * width, 4), weight = values<T>(width, 5), bias = values<T>(width, 6),
             dy = values<T>(kRows * width, 7);
  std::vector<T> y(x.size()), mean(kRows), rstd(kRows), dx(x.size()),
      sums(static_cast<std::size_t>(2 * width)), scratch(static_cast<std::size_t>(4 * width));
  loops_of<T>(set).swish_layer_norm(
      {kRows, width, T(1e-6), x.data(), weight.data(), bias.data(), y.data(), mean.data(), rstd.data()}, 0,
      kRows);
  loops_of<T>(set).swish_layer_norm_backward({.rows = kRows,
                                              .width = width,
                                              .x = x.data(),
                                              .weight = weight.data(),
                                              .bias = bias.data(),
                                              .mean = mean.data(),
                                              .rstd = rstd.data(),
                                              .dy = dy.data(),
                                              .dx = {dx.data(), false},
                                              .dweight = {},
                                              .dbias = {}},
                                             0, kRows, sums.data(), scratch.data());
  for (const auto& part : {mean, rstd, dx, sums}) y.insert(y.end(), part.begin(), part.end());
  return y;
}

template <typename T>
std::vector<T> gated(InstructionSet set, GateForm form, std::int64_t width) {
  constexpr std::int64_t kRows = 5;
  const std::int64_t columns = gate_parts(form) * width;
  const auto u = values<T>(kRows * width, 8), o = values<T>(kRows * width, 9), weight = values<T>(width, 10),
             bias = values<T>(width, 11), dy = values<T>(kRows * columns, 12);
  std::vector<T> y(static_cast<std::size_t>(kRows * columns)), mean(kRows), rstd(kRows), du(u.size()),
      d_o(o.size()), sums(static_cast<std::size_t>(2 * width)),
      scratch(static_cast<std::size_t>(columns + 4 * width));
  const Dropout dropout{0.25, 99, nullptr};
  loops_of<T>(set).gate({form, kRows, width, T(1e-6), u.data(), width, o.data(), weight.data(), bias.data(),
                         y.data(), mean.data(), rstd.data(), dropout},
                        0, kRows, scratch.data());
  loops_of<T>(set).gate_backward({.form = form,
                                  .rows = kRows,
                                  .width = width,
                                  .u = u.data(),
                                  .u_stride = width,
                                  .o = o.data(),
                                  .weight = weight.data(),
                                  .bias = bias.data(),
                                  .mean = mean.data(),
                                  .rstd = rstd.data(),
                                  .dy = dy.data(),
                                  .du = {du.data(), false},
                                  .du_stride = width,
                                  .d_o = {d_o.data(), false},
                                  .dweight = {},
                                  .dbias = {},
                                  .dropout = dropout},
                                 0, kRows, sums.data(), scratch.data());
  for (const auto& part : {mean, rstd, du, d_o, sums}) y.insert(y.end(), part.begin(), part.end());
  return y;
}

template <typename T>
std::vector<T> activated(InstructionSet set, std::int64_t count) {
  auto x = values<T>(count, 13), dy = values<T>(count, 14);
  loops_of<T>(set).scaled_silu_backward(x.data(), dy.data(), count, T(0.3), T(0.01));
  loops_of<T>(set).scaled_silu(x.data(), count, T(0.3), T(0.01));
  loops_of<T>(set).silu_backward(x.data(), dy.data(), count);
  loops_of<T>(set).silu(dy.data(), x.data(), count);
  x.insert(x.end(), dy.begin(), dy.end());
  return x;
}

// e^(x - 0.5) * 0.3, their sum, and the largest of x.
template <typename T>
std::vector<T> exponentials(InstructionSet set, std::int64_t count) {
  std::vector<T> x = values<T>(count, 17);
  const T most = loops_of<T>(set).largest(x.data(), count);
  const T sum = loops_of<T>(set).exponentials(x.data(), count, T(0.5), T(0.3));
  x.insert(x.end(), {most, sum});
  return x;
}

TEST(Loops, ExponentialsAgreeWithTheLibraryInEveryInstructionSet) {
  for (const auto& [word, set] : kInstructionSets) {
    if (!is_usable(set)) continue;
    for (const std::int64_t count : {1, 7, 16, 31, 64, 333}) {
      SCOPED_TRACE(testing::Message() << word << ": " << count);
      const std::vector<float> x = values<float>(count, 17), found = exponentials<float>(set, count);
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = 0.3 * std::exp(static_cast<double>(x[i]) - 0.5);
        sum += expected;
        ASSERT_NEAR(found[i], expected, 1e-6 * expected) << i;
      }
      EXPECT_EQ(found[x.size()], *std::max_element(x.begin(), x.end()));
      EXPECT_NEAR(found[x.size() + 1], sum, 1e-6 * sum);
    }
  }
}

template <typename T>
void expect_same_bits() {
  const InstructionSet one = InstructionSet::baseline, other = InstructionSet::avx512;
  for (const Shape& s : kShapes) {
    EXPECT_EQ(product<T>(one, s, true), product<T>(other, s, true)) << s.m << " x " << s.n << " x " << s.k;
    EXPECT_EQ(product<T>(one, s, false), product<T>(other, s, false)) << s.m << " x " << s.n << " x " << s.k;
  }
  for (const std::int64_t width : {1, 7, 16, 31, 64, 100, 256, 333}) {
    EXPECT_EQ(norm<T>(one, width), norm<T>(other, width)) << width;
    EXPECT_EQ(gated<T>(one, GateForm::concat, width), gated<T>(other, GateForm::concat, width)) << width;
    EXPECT_EQ(gated<T>(one, GateForm::product, width), gated<T>(other, GateForm::product, width)) << width;
    EXPECT_EQ(activated<T>(one, width), activated<T>(other, width)) << width;
    EXPECT_EQ(exponentials<T>(one, width), exponentials<T>(other, width)) << width;
  }
}

TEST(Loops, GiveTheSameBitsInEveryInstructionSet) {
  if (!is_usable(InstructionSet::avx512)) GTEST_SKIP() << "this processor has no AVX-512";
  expect_same_bits<float>();
  expect_same_bits<double>();
}

TEST(Loops, AreCompiledForTheirInstructionSet) {
#if defined(__aarch64__)
  constexpr int kBaseline = 16;
#else
  constexpr int kBaseline = 32;
#endif
  EXPECT_EQ(loops_of<float>(InstructionSet::baseline).vector_bytes, kBaseline);
  if (is_usable(InstructionSet::avx512)) {
    EXPECT_EQ(loops_of<float>(InstructionSet::avx512).vector_bytes, 64);
    EXPECT_EQ(instruction_set(), InstructionSet::avx512);
  }
}

}  // namespace
}  // namespace hstu::kernels
