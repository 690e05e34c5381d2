// The rule of errors.h, which decides whether a kernel is right.
#include "attention/errors.h"

#include <limits>

#include <gtest/gtest.h>

namespace hstu {
namespace {

// 1,000 elements of each output whose reference is off by 1: `typical` is the error of all but one of them,
// `largest` that of the last.
std::string complaint_of(double typical, double largest, int elements = 1000) {
  Errors errors;
  for (int i = 0; i < elements; ++i)
    for (std::size_t output = 0; output < 4; ++output) errors.add(output, i == 7 ? largest : typical, 1, 0);
  return errors.complaint();
}

TEST(AttentionErrors, MayHaveTwiceTheNormOfTheReference) {
  EXPECT_EQ(complaint_of(1, 1), "");
  EXPECT_EQ(complaint_of(1.99, 1.99), "");
  EXPECT_NE(complaint_of(2.01, 2.01), "");
}

TEST(AttentionErrors, MayHaveFourTimesTheLargestErrorOfTheReference) {
  EXPECT_EQ(complaint_of(1, 3.9), "");
  EXPECT_NE(complaint_of(1, 4.1), "");
}

TEST(AttentionErrors, ThatAreNotNumbersAreRefused) {
  EXPECT_NE(complaint_of(1, std::numeric_limits<double>::quiet_NaN()), "");
  EXPECT_NE(complaint_of(1, std::numeric_limits<double>::infinity()), "");
}

TEST(AttentionErrors, OfTooFewElementsProveNothing) {
  EXPECT_NE(complaint_of(1, 1, 999), "");
  EXPECT_EQ(Errors{}.complaint(), "");
}

}  // namespace
}  // namespace hstu
