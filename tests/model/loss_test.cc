#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "hstu/loss/binary_cross_entropy.h"
#include "support/golden.h"

namespace hstu {
namespace {

// Up to logits of +-1000, where a naive log(1 - p) is infinite.
TEST(BinaryCrossEntropy, IsStableForExtremeLogits) {
  const testing::Golden g("head_and_loss");
  const Tensor logits = g.tensor("extreme.logits"), expected = g.tensor("extreme.loss");
  const auto labels = g.values<double>("extreme.label");
  ASSERT_EQ(expected.size(), logits.size());
  const Tensor gradient = g.tensor("extreme.dlogits");
  for (std::int64_t i = 0; i < logits.size(); ++i) {
    Tape tape;
    const Variable z(logits.row_range(i, i + 1).copy());
    const Variable loss = loss::binary_cross_entropy(
        tape, z, Tensor::from<float>({1}, {static_cast<float>(labels[static_cast<std::size_t>(i)])}),
        Tensor::from<float>({1}, {1}), 1);
    tape.backward(loss);
    const double value = expected.data<double>()[i];
    EXPECT_NEAR(loss.value().data<double>()[0], value, 1e-13 * (1 + value));
    EXPECT_NEAR(z.gradient().data<double>()[0], gradient.data<double>()[i], 1e-13);
  }
}

// Whatever its logit is.
TEST(BinaryCrossEntropy, PaddingAddsNothing) {
  const Tensor labels = Tensor::from<float>({2}, {1, 1}), real = Tensor::from<float>({2}, {1, 0});
  Tape tape;
  const Variable z(Tensor::from<double>({2}, {0.5, std::numeric_limits<double>::quiet_NaN()}));
  const Variable loss = loss::binary_cross_entropy(tape, z, labels, real, 2);
  tape.backward(loss);
  EXPECT_NEAR(loss.value().data<double>()[0], 2 * std::log1p(std::exp(-0.5)), 1e-15);
  EXPECT_NEAR(z.gradient().data<double>()[0], -2 / (1 + std::exp(0.5)), 1e-15);
  EXPECT_EQ(z.gradient().data<double>()[1], 0);
}

}  // namespace
}  // namespace hstu
