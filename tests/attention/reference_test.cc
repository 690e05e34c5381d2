// The reference that kernels are compared with, itself.
#include "attention/reference.h"

#include <functional>

#include <gtest/gtest.h>

#include "attention/softmax_reference.h"
#include "hstu/attention/problem.h"
#include "hstu/base/random.h"

namespace hstu {
namespace {

constexpr SampleMask kMasks[] = {
    {11, 0, 11, 1, kUnlimited, 0},           // causal
    {11, 0, 11, 1, kUnlimited, kUnlimited},  // full
    {11, 0, 11, 1, 3, 0},                    // local
    {11, 0, 11, 1, 2, 4},                    // local to both sides
    {11, 2, 7, 2, kUnlimited, 0},            // contexts and groups of targets
    {11, 3, 8, 2, 1, 0},                     // and a window
    {11, 1, 6, 3, kUnlimited, kUnlimited},   // and full
    {11, 0, 0, 4, 1, 0},                     // targets alone
    {11, 11, 11, 1, 0, 0},                   // contexts alone
    {1, 0, 1, 1, 0, 0},
};

constexpr int kHeadDim = 3;
constexpr double kAlpha = -0.7, kScale = 0.3;

struct Inputs {
  Matrix q, k, v, d_o;
  explicit Inputs(int n) {
    RandomStream random{.key = 3};
    for (Matrix* all : {&q, &k, &v, &d_o})
      for (int i = 0; i < n * kHeadDim; ++i) all->push_back(random.normal());
  }
  AttentionResult result(const SampleMask& mask, ScoreFunction score = ScoreFunction::silu) const {
    const auto exact = [](double x) { return x; };
    if (score == ScoreFunction::softmax)
      return reference_softmax<double>(mask, {3, 1}, kHeadDim, q, k, v, d_o, kAlpha, kScale, exact);
    return reference_attention<double>(mask, kHeadDim, q, k, v, d_o, kAlpha, kScale, exact);
  }
  // The sum of dO o O, whose gradients dq, dk and dv are.
  double loss(const SampleMask& mask, ScoreFunction score) const {
    const Matrix o = result(mask, score).o;
    double sum = 0;
    for (std::size_t i = 0; i < o.size(); ++i) sum += o[i] * d_o[i];
    return sum;
  }
};

TEST(AttentionReference, GradientsAreTheDifferencesOfItsOwnForward) {
  constexpr double kStep = 1e-5;
  for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
    for (const SampleMask& mask : kMasks) {
      const Inputs at(mask.n);
      const AttentionResult gradients = at.result(mask, score);
      for (const auto& [input, gradient] :
           {std::pair{&Inputs::q, &gradients.dq}, {&Inputs::k, &gradients.dk}, {&Inputs::v, &gradients.dv}}) {
        for (std::size_t i = 0; i < gradient->size(); ++i) {
          Inputs before = at, after = at;
          (before.*input)[i] -= kStep;
          (after.*input)[i] += kStep;
          const double difference = (after.loss(mask, score) - before.loss(mask, score)) / (2 * kStep);
          EXPECT_NEAR((*gradient)[i], difference, 1e-8) << describe(mask) << ", element " << i;
        }
      }
    }
  }
}

// The formula of problem.h for one query that sees two keys.
TEST(AttentionReference, ForwardIsSiluOfTheScoresTimesTheValues) {
  const SampleMask mask{2, 0, 2, 1, kUnlimited, 0};
  const Inputs in(2);
  const AttentionResult r = in.result(mask);
  double expected = 0;
  for (std::size_t j = 0; j < 2; ++j) {
    double x = 0;
    for (std::size_t d = 0; d < kHeadDim; ++d) x += kAlpha * in.q[kHeadDim + d] * in.k[j * kHeadDim + d];
    expected += kScale * x / (1 + std::exp(-x)) * in.v[j * kHeadDim + 1];
  }
  EXPECT_NEAR(r.o[kHeadDim + 1], expected, 1e-14);
}

template <typename Sum>
void check_rows(const std::function<double(double)>& round) {
  for (const SampleMask& mask : kMasks) {
    const Inputs in(mask.n);
    const AttentionResult all =
        reference_attention<Sum>(mask, kHeadDim, in.q, in.k, in.v, in.d_o, kAlpha, kScale, round);
    const Matrix* const inputs[] = {nullptr, &in.q, &in.k, &in.v, &in.d_o};
    const auto load = [&](InputPart part, int row, double* to) {
      std::copy_n(inputs[part]->begin() + row * kHeadDim, kHeadDim, to);
    };
    for (int row = 0; row < mask.n; ++row) {
      const AttentionResult one = reference_row<Sum>(mask, kHeadDim, row, load, kAlpha, kScale, round);
      for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t d = 0; d < kHeadDim; ++d)
          EXPECT_EQ(one[i][d], all[i][static_cast<std::size_t>(row) * kHeadDim + d])
              << describe(mask) << ", row " << row << ", output " << i;
      }
    }
  }
}

TEST(AttentionReference, ARowAloneIsThatRowOfTheWholeBitForBit) {
  check_rows<double>([](double x) { return x; });
  check_rows<float>([](double x) { return std::round(x * 256) / 256; });
}

}  // namespace
}  // namespace hstu
