#include "hstu/base/fixed_sum.h"

#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"

namespace hstu {
namespace {

TEST(FixedSum, DoesNotDependOnOrderOrParts) {
  RandomStream random{derive_key(3, "fixed sum")};
  FixedSum forward, backward, left, right;
  std::vector<double> terms(1001);
  for (double& term : terms) term = (random.uniform() - 0.3) * 30;
  for (const double term : terms) forward.add(term);
  for (std::size_t i = terms.size(); i-- > 0;) backward.add(terms[i]);
  for (std::size_t i = 0; i < terms.size(); ++i) (i % 3 == 0 ? left : right).add(terms[i]);
  left.merge(right);
  EXPECT_EQ(forward, backward);
  EXPECT_EQ(forward, left);
}

TEST(FixedSum, KeepsSmallTermsBesideALargeSum) {
  FixedSum sum;
  sum.add(1e9);
  for (int i = 0; i < 1000; ++i) sum.add(1e-9);
  sum.add(-1e9);
  EXPECT_NEAR(sum.value(), 1e-6, 1e-15);
}

TEST(FixedSum, IsRestoredFromItsWords) {
  for (const double term : {0.0, 0.75, -123.5, 1e19, -1e19}) {
    FixedSum sum;
    sum.add(term);
    EXPECT_EQ(FixedSum::from_words(sum.words()), sum);
    EXPECT_EQ(sum.value(), term);
  }
}

}  // namespace
}  // namespace hstu
