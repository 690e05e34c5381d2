// One update by a global batch, for any division into parts and ranks.
#include "hstu/step/step.h"

#include <atomic>
#include <cmath>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/comm/thread_group.h"
#include "hstu/training/evaluation.h"
#include "support/kind_options.h"
#include "training/small_dataset.h"
#include "training/step_on.h"

namespace hstu {
namespace {

using testing::step_on;
using testing::step_on_parts;
using Positions = std::span<const std::int64_t>;

class Step : public ::testing::Test {
 protected:
  Step() {
    testing::write_small_dataset(folder_ / "data");
    options_ = testing::small_run(folder_ / "data");
    dlrmv4_of(options_).input_dropout = dlrmv4_of(options_).layer_dropout = 0.3;
    options_.dense.config.kind = DenseOptimizerKind::sgd;  // Adam would make equal steps of unequal gradients
    options_.dense.learning_rate = 0.5;
    options_.sparse.kind = RowOptimizerKind::sgd;
    options_.sparse.learning_rate = 0.5;
  }
  std::vector<std::int64_t> anchors(std::int64_t n) const {
    return Experiment(options_).anchors().training.first(n);
  }
  Path folder_ = temporary_folder();
  RunOptions options_;
};

// The values of a learner: every parameter, then every table row by id.
std::vector<float> values_of(const Learner& learner) {
  std::vector<float> all;
  for (const Parameter* p : learner.model->parameters().all())
    all.insert(all.end(), p->value.data<float>(), p->value.data<float>() + p->value.size());
  for (std::size_t t = 0; t < learner.tables.size(); ++t) {
    for (const auto& row : testing_embedding::rows_by_id(learner.tables[t]))
      all.insert(all.end(), row.values.begin(), row.values.end());
  }
  return all;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 2e-6 * (1 + std::abs(expected[i]))) << "value " << i;
}

std::vector<Positions> cut(Positions positions, const std::vector<std::size_t>& sizes) {
  std::vector<Positions> parts;
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    parts.push_back(positions.subspan(at, size));
    at += size;
  }
  return parts;
}

// With dropout: its draws depend on the sample's name, so parts draw the same as the whole batch.
TEST_F(Step, PartsOfABatchMoveTheModelAsTheWholeDoes) {
  const auto all = anchors(24);
  Experiment whole(options_), parts(options_);
  for (std::int64_t step = 0; step < 3; ++step) {
    const StepResult a = step_on(whole, all, step);
    const StepResult b = step_on_parts(parts, cut(all, {1, 10, 0, 13}), 24, step);
    EXPECT_NEAR(a.loss, b.loss, 1e-6);
    EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-5 * a.gradient_norm);
    EXPECT_EQ(a.samples, b.samples);
    EXPECT_EQ(a.tokens, b.tokens);
    ASSERT_EQ(testing::predictions_of(a).size(), 24);
    ASSERT_EQ(testing::predictions_of(b).size(), 24);
    for (std::size_t i = 0; i < 24; ++i) {
      EXPECT_NEAR(testing::predictions_of(a).probabilities()[i],
                  testing::predictions_of(b).probabilities()[i], 1e-6);
      EXPECT_EQ(testing::predictions_of(a).labels()[i], testing::predictions_of(b).labels()[i]);
    }
  }
  expect_near(values_of(parts.learner()), values_of(whole.learner()));
}

// Trap: the gradient depends on the number of ranks. Seven samples on four ranks, one of which has none.
TEST_F(Step, RanksMoveTheModelAsOneDoes) {
  const auto all = anchors(7);
  Experiment whole(options_);
  for (std::int64_t step = 0; step < 2; ++step) step_on(whole, all, step);
  const auto expected = values_of(whole.learner());
  const auto slices = cut(all, {3, 0, 1, 3});
  std::mutex mutex;
  std::vector<std::vector<float>> found;
  run_ranks(4, [&](Communicator& comm) {
    Experiment mine(options_, comm);
    for (std::int64_t step = 0; step < 2; ++step)
      step_on_parts(mine, {slices[static_cast<std::size_t>(comm.rank())]}, 7, step, comm);
    const std::scoped_lock lock(mutex);
    found.push_back(values_of(mine.learner()));
  });
  ASSERT_EQ(found.size(), 4u);
  for (const auto& of_rank : found) EXPECT_EQ(of_rank, found.front());  // in every bit
  expect_near(found.front(), expected);
}

TEST_F(Step, RanksEvaluateAsOneDoes) {
  options_.evaluation.batch_size = 7;
  Experiment whole(options_);
  const EvaluationResult expected = *Evaluator(whole).run();
  std::atomic<int> right = 0;
  run_ranks(3, [&](Communicator& comm) {
    Experiment mine(options_);
    EvaluationResult found = *Evaluator(mine).run(nullptr, comm);
    if (comm.rank() > 0) found.baseline = expected.baseline;  // rank 0 alone computes it
    right += to_json(found, kRankingMetrics).dump() == to_json(expected, kRankingMetrics).dump() ? 1 : 0;
  });
  EXPECT_EQ(right, 3);
}

TEST_F(Step, HasTheSameBitsUnlessTheConfigurationSaysOtherwise) {
  EXPECT_TRUE(Experiment(options_).learner().compute.deterministic);
  options_.deterministic = false;
  EXPECT_FALSE(Experiment(options_).learner().compute.deterministic);
}

// Trap: one bad gradient makes table rows NaN without an error.
TEST_F(Step, ChangesNothingWhenAGradientIsNotFinite) {
  const auto all = anchors(8);
  Experiment experiment(options_);
  step_on(experiment, all, 0);
  Parameter* const bias = experiment.learner().model->parameters().all().back();
  const float before = bias->value.data<float>()[0];
  bias->value.mutable_data<float>()[0] = NAN;
  const auto poisoned = values_of(experiment.learner());
  EXPECT_THAT([&] { step_on(experiment, all, 1); },
              ::testing::ThrowsMessage<Error>(
                  ::testing::AllOf(::testing::HasSubstr("step 2"), ::testing::HasSubstr(bias->name))));
  bias->value.mutable_data<float>()[0] = before;
  auto healed = poisoned;
  const auto now = values_of(experiment.learner());
  ASSERT_EQ(now.size(), healed.size());
  std::size_t differing = 0;
  for (std::size_t i = 0; i < now.size(); ++i) differing += now[i] != healed[i] ? 1 : 0;
  EXPECT_EQ(differing, 1u);  // the one that the test reset
}

}  // namespace
}  // namespace hstu
