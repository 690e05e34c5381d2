#include "hstu/mlperf/convergence.h"

#include <vector>

#include <gtest/gtest.h>

namespace hstu {
namespace {

// What the official checker (mlperf-logging 4.1.68) computes; tests/mlperf/official_test.py compares
// verdicts.
TEST(Convergence, TheBandIsThatOfTheReferencePoints) {
  const struct {
    double batch, mean, deviation, least;
  } expected[] = {{8'192, 69'067'662, 3'810'680, 66'297'354},
                  {12'288, 76'373'713, 4'401'740, 73'233'022},
                  {16'384, 83'679'763, 4'992'799, 80'117'345},
                  {24'576, 98'291'864, 6'174'918, 93'885'991},
                  {32'768, 112'903'964, 7'357'036, 107'555'509}};
  for (const auto& e : expected) {
    SCOPED_TRACE(e.batch);
    const auto band = convergence_band(e.batch);
    ASSERT_TRUE(band);
    EXPECT_NEAR(band->mean, e.mean, 1);
    EXPECT_NEAR(band->deviation, e.deviation, 1);
    EXPECT_NEAR(band->least, e.least, 1);
  }
  EXPECT_FALSE(convergence_band(65'536));
  EXPECT_EQ(convergence_band(4'096)->batch, 8'192);
}

ConvergenceVerdict of_runs(double batch, double evaluations) {
  std::vector<Convergence> runs(10, {batch, evaluations * 2'293'760, ""});
  return check_convergence(runs);
}

TEST(Convergence, FasterRunsThanTheReferenceAreScaledAndStillFasterOnesFail) {
  EXPECT_FALSE(of_runs(8'192, 27).passes);
  EXPECT_TRUE(of_runs(8'192, 29).passes);
  EXPECT_NEAR(of_runs(8'192, 29).factor.value_or(0), 1.0383, 5e-5);
  EXPECT_TRUE(of_runs(8'192, 31).passes);
  EXPECT_FALSE(of_runs(8'192, 31).factor);
  EXPECT_NEAR(of_runs(16'384, 35).factor.value_or(0), 1.0423, 5e-5);
  EXPECT_FALSE(of_runs(16'384, 34).passes);
  EXPECT_FALSE(of_runs(4'096, 26).passes);
  EXPECT_FALSE(of_runs(65'536, 99).passes);
}

TEST(Convergence, OneRunMayDiverge) {
  std::vector<Convergence> runs(10, {8'192, 30 * 2'293'760, ""});
  runs[3].samples.reset();
  EXPECT_TRUE(check_convergence(runs).passes);
  runs[4].samples.reset();
  EXPECT_FALSE(check_convergence(runs).passes);
}

}  // namespace
}  // namespace hstu
