#include "hstu/mlperf/grid.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(MlperfGrid, IsThatOfTheOfficialRules) {
  const struct {
    std::int64_t batch, interval_steps, first_step;
    double interval, first;
  } expected[] = {
      {1'024, 2'238, 46'998, 2'291'712, 48'125'952}, {2'048, 1'119, 24'618, 2'291'712, 50'417'664},
      {4'096, 560, 12'880, 2'293'760, 52'756'480},   {8'192, 280, 7'000, 2'293'760, 57'344'000},
      {16'384, 140, 4'340, 2'293'760, 71'106'560},   {32'768, 70, 2'870, 2'293'760, 94'044'160},
      {65'536, 35, 2'205, 2'293'760, 144'506'880}};
  for (const auto& e : expected) {
    SCOPED_TRACE(e.batch);
    const EvaluationGrid grid = benchmark_grid(e.batch);
    EXPECT_EQ(grid.interval_steps, e.interval_steps);
    EXPECT_EQ(grid.first_step, e.first_step);
    const GridSamples samples = benchmark_grid_samples(static_cast<double>(e.batch));
    EXPECT_EQ(samples.interval, e.interval);
    EXPECT_EQ(samples.first, e.first);
    EXPECT_TRUE(grid.has(e.first_step));
    EXPECT_FALSE(grid.has(e.first_step - e.interval_steps));
    EXPECT_FALSE(grid.has(e.first_step + 1));
  }
}

TEST(MlperfGrid, OfOtherDataBeginsAtTheFirstPointBehindWhatIsSkipped) {
  const EvaluationGrid grid =
      grid_of(10, 4'321, 0.01, 0.25);  // 44 samples are 5 steps; 1,080 samples are skipped
  EXPECT_EQ(grid.interval_steps, 5);
  EXPECT_EQ(grid.first_step, 110);
  EXPECT_EQ(grid_of(10, 4'321, 0.01, 0).first_step, 5);
}

TEST(MlperfGrid, TheBandOfRatesIncludesItsEnds) {
  const RateBand band = rate_band(16'384);
  EXPECT_TRUE(band.has(1e-6));
  EXPECT_TRUE(band.has(3e-6));
  EXPECT_FALSE(band.has(0.99e-6));
  EXPECT_FALSE(band.has(3.01e-6));
}

}  // namespace
}  // namespace hstu
