// Rows in bf16, whose updates are rounded up or down at random.
#include "hstu/rows/row_format.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/base/error.h"
#include "hstu/base/float16.h"
#include "hstu/embedding/table_set.h"

namespace hstu {
namespace {

using namespace testing_embedding;
using testing::HasSubstr;

RowShape bf16_shape(std::int64_t dim) {
  return {.rows = 1000, .dim = dim, .key = 5, .dtype = DType::bf16};
}

// One value, stored by the update of an id in a step.
float stored(const RowFormat& format, float value, std::int64_t id, std::int64_t step,
             std::int64_t column = 0) {
  std::vector<float> values(11, 0.0f), memory(6), back(11);
  values[static_cast<std::size_t>(column)] = value;
  format.store_update(values.data(), id, step, memory.data());
  format.load(memory.data(), back.data());
  return back[static_cast<std::size_t>(column)];
}

TEST(RowFormat, RoundsUpdatesToANeighbourSoThatTheMeanIsTheValue) {
  const RowFormat format(bf16_shape(11));
  constexpr int kDraws = 20'000;
  for (const float value : {1.0f + 0x1p-9f, -3.3f, 1e-20f, 0.7f, -1000.4f}) {
    double sum = 0;
    std::set<float> seen;
    for (int i = 0; i < kDraws; ++i) {
      seen.insert(stored(format, value, i % 100, i / 100, i % 11));
      sum += stored(format, value, i % 100, i / 100, i % 11);
    }
    ASSERT_EQ(seen.size(), 2u) << value;
    const double low = *seen.begin(), high = *seen.rbegin();
    EXPECT_LT(low, value);
    EXPECT_GT(high, value);
    EXPECT_LE(std::abs(high - low), std::abs(value) * 0x1p-7);
    const double p = (value - low) / (high - low), deviation = std::sqrt(p * (1 - p) / kDraws) * (high - low);
    EXPECT_NEAR(sum / kDraws, value, 5 * deviation) << value;
  }
}

TEST(RowFormat, KeepsWhatBf16HoldsAndWhatIsNotFinite) {
  const RowFormat format(bf16_shape(11));
  for (const float value : {0.0f, -0.0f, 1.0f, -2.5f, 0x1p-126f, INFINITY, -INFINITY})
    for (std::int64_t step = 0; step < 50; ++step) EXPECT_EQ(stored(format, value, 3, step), value);
  EXPECT_TRUE(std::isnan(stored(format, NAN, 3, 1)));
}

TEST(RowFormat, DrawsDependOnTableIdStepAndColumn) {
  const RowFormat format(bf16_shape(11));
  RowShape other = bf16_shape(11);
  other.key = 6;
  int same_id = 0, same_step = 0, same_column = 0, same_table = 0;
  for (std::int64_t i = 0; i < 400; ++i) {
    const float value = stored(format, 1.0f + 0x1p-8f, i, 7);
    EXPECT_EQ(stored(format, 1.0f + 0x1p-8f, i, 7), value) << "it is repeatable";
    same_id += stored(format, 1.0f + 0x1p-8f, i + 1, 7) == value ? 1 : 0;
    same_step += stored(format, 1.0f + 0x1p-8f, i, 8) == value ? 1 : 0;
    same_column += stored(format, 1.0f + 0x1p-8f, i, 7, 1 + i % 10) == value ? 1 : 0;
    same_table += stored(RowFormat(other), 1.0f + 0x1p-8f, i, 7) == value ? 1 : 0;
  }
  for (const int same : {same_id, same_step, same_column, same_table}) EXPECT_NEAR(same, 200, 60);
}

TableConfig bf16_table() {
  return {.name = "item", .rows = 500, .dim = 7, .dtype = DType::bf16};
}

// Each update is a hundredth of the distance between neighbours: rounding to the nearest would change
// nothing.
TEST(RowsInBf16, LearnFromUpdatesThatAreSmallerThanTheirPrecision) {
  TableConfig config = bf16_table();
  config.initial = {.kind = InitialKind::constant, .value = 1.0};
  TableSet tables({config}, {.kind = RowOptimizerKind::sgd}, 1);
  const Ids ids = range(0, 100);
  const std::vector<float> gradients(700, 1.0f);
  for (std::int64_t step = 0; step < 1000; ++step) {
    apply_gradients(tables[0], ids, gradients.data(), 0x1p-8 / 100, step);
  }
  double mean = 0;
  for (const float value : eval_lookup(tables[0], ids)) mean += value / 700;
  EXPECT_NEAR(mean, 1.0 - 1000 * 0x1p-8 / 100, 2.5e-3);
}

TEST(RowsInBf16, AreTheSameForAnyOrderAndNumberOfThreads) {
  TableSet a({bf16_table()}, {}, 1), b({bf16_table()}, {}, 1);
  const Ids ids = range(0, 300);
  Ids reversed(ids.rbegin(), ids.rend());
  for (std::int64_t step = 0; step < 20; ++step) {
    const auto gradients = random_values(300 * 7, static_cast<std::uint64_t>(step));
    apply_gradients(a[0], ids, gradients.data(), 0.01, step);
    const Threads threads(3);
    for (const std::int64_t id : reversed)
      apply_gradients(b[0], Ids{id}, gradients.data() + 7 * id, 0.01, step);
  }
  EXPECT_EQ(eval_lookup(a[0], range(-1, 501)), eval_lookup(b[0], range(-1, 501)));
}

TEST(RowsInBf16, HaveTheInitialValueThatEvaluationReadBefore) {
  TableSet tables({bf16_table()}, {}, 1);
  const std::vector<float> before = eval_lookup(tables[0], range(0, 50));
  EXPECT_EQ(train_lookup(tables[0], range(0, 50)), before);
  for (const float value : before) EXPECT_EQ(static_cast<float>(BFloat16(value)), value);
}

TEST(RowsInBf16, TakeHalfOfTheMemoryOfTheirValues) {
  TableConfig config{.name = "item", .rows = 100'000, .dim = 64};
  TableSet f32({config}, {}, 1);
  config.dtype = DType::bf16;
  TableSet bf16({config}, {}, 1);
  train_lookup(f32[0], range(0, 65'536));
  train_lookup(bf16[0], range(0, 65'536));
  EXPECT_NEAR(static_cast<double>(f32.bytes() - bf16.bytes()) / 65'536, 128, 4);
}

}  // namespace
}  // namespace hstu
