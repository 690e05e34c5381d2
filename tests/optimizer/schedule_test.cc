#include "hstu/optimizer/schedule.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/optimizer/clipping.h"
#include "optimizer/support.h"

namespace hstu {
namespace {

using namespace testing_optimizer;

TEST(LearningRateSchedule, FirstStepOfWarmUpMoves) {
  const LearningRateSchedule schedule{.base = 1.0, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.25);
  EXPECT_DOUBLE_EQ(schedule.at(2), 0.75);
  EXPECT_DOUBLE_EQ(schedule.at(3), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(1'000'000), 1.0);
}

TEST(LearningRateSchedule, ReferenceWarmUpStartsWithAnEmptyStep) {
  const LearningRateSchedule schedule{.base = 1e-6, .warmup_steps = 24'000, .warmup_from_zero_step = true};
  EXPECT_EQ(schedule.at(0), 0.0);
  EXPECT_NEAR(schedule.at(19), 7.9167e-10, 1e-14);  // the reference's log at its global step 20
  EXPECT_DOUBLE_EQ(schedule.at(24'000), 1e-6);
  EXPECT_LT(schedule.at(23'999), 1e-6);
}

TEST(LearningRateSchedule, StartIsNeverAboveBase) {
  const LearningRateSchedule schedule{.base = 0.5, .start = 2.0, .warmup_steps = 10};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.5);
  const LearningRateSchedule from{.base = 0.5, .start = 0.1, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(from.at(1), 0.3);
}

TEST(LearningRateSchedule, DecaysToTheFinalFractionAndStays) {
  LearningRateSchedule schedule{
      .base = 2.0, .warmup_steps = 10, .decay = Decay::linear, .decay_steps = 110, .final_fraction = 0.1};
  EXPECT_DOUBLE_EQ(schedule.at(10), 2.0);
  EXPECT_DOUBLE_EQ(schedule.at(60), 2.0 * (0.1 + 0.9 * 0.5));
  EXPECT_DOUBLE_EQ(schedule.at(110), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(100'000), 0.2);
  schedule.decay = Decay::cosine;
  EXPECT_NEAR(schedule.at(35), 2.0 * (0.1 + 0.9 * 0.5 * (1.0 + std::sqrt(0.5))), 1e-12);
  EXPECT_NEAR(schedule.at(110), 0.2, 1e-12);
}

TEST(LearningRateSchedule, WithoutWarmUpIsTheBaseRateAtOnce) {
  EXPECT_DOUBLE_EQ((LearningRateSchedule{.base = 0.3}).at(0), 0.3);
}

TEST(LearningRateSchedule, RefusesValuesThatCannotWork) {
  EXPECT_THROW((LearningRateSchedule{.base = -1.0}).validate(), UsageError);
  EXPECT_THROW((LearningRateSchedule{.warmup_steps = -1}).validate(), UsageError);
  EXPECT_THROW((LearningRateSchedule{.warmup_steps = 5, .decay = Decay::linear, .decay_steps = 5}).validate(),
               UsageError);
  EXPECT_THROW((LearningRateSchedule{.final_fraction = 1.5}).validate(), UsageError);
  EXPECT_NO_THROW(LearningRateSchedule{}.validate());
}

TEST(Clipping, NormCountsEveryParameterOnce) {
  Parameters parameters;
  set_gradient(parameters.add("a", {0, 0}), {3.0f, 4.0f});
  set_gradient(parameters.add("b", {0}), {12.0f});
  EXPECT_EQ(GradientSquares(parameters.list()).norm(), 13.0);
  EXPECT_DOUBLE_EQ(clip_scale(13.0, 1.0), 1.0 / 13.000001);
  EXPECT_EQ(clip_scale(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_scale(13.0, 0.0), 1.0) << "a maximum of 0 means no clipping";
}

TEST(Clipping, NormIsTheSameForAnyNumberOfThreads) {
  Parameters parameters;
  set_gradient(parameters.add("a", std::vector<float>(500'001)), random_values(500'001, 1));
  set_gradient(parameters.add("b", std::vector<float>(77)), random_values(77, 2));
  const int before = threads();
  set_threads(1);
  const double one = GradientSquares(parameters.list()).norm();
  set_threads(4);
  const double four = GradientSquares(parameters.list()).norm();
  set_threads(before);
  EXPECT_EQ(one, four);
  EXPECT_NEAR(one, std::sqrt(500'078.0 / 3.0), 5.0);
}

TEST(Clipping, LargeGradientsDoNotOverflow) {
  Parameters parameters;
  set_gradient(parameters.add("a", {0, 0}), {3e38f, 0.0f});
  EXPECT_NEAR(GradientSquares(parameters.list()).norm() / 3e38, 1.0, 1e-6);
  EXPECT_EQ(GradientSquares(parameters.list()).first_bad(), "");
}

TEST(Clipping, ANanGradientSurfacesInNormAndScaleAndIsNamed) {
  Parameters parameters;
  parameters.add("fine", {1.0f});
  set_gradient(parameters.add("broken", {0, 0}), {1.0f, std::numeric_limits<float>::quiet_NaN()});
  set_gradient(parameters.add("also", {0}), {std::numeric_limits<float>::infinity()});
  const double norm = GradientSquares(parameters.list()).norm();
  EXPECT_TRUE(std::isnan(norm));
  EXPECT_TRUE(std::isnan(clip_scale(norm, 1.0))) << "min(1, NaN) must not become 1";
  EXPECT_EQ(GradientSquares(parameters.list()).first_bad(), "broken");
}

}  // namespace
}  // namespace hstu
