// Numbers that overflow: how a run ends, which files it leaves, and how it is resumed.
#include <algorithm>
#include <array>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/comm/thread_group.h"
#include "hstu/step/step.h"
#include "support/kind_options.h"
#include "training/run_fixture.h"
#include "training/step_on.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

// The first step has a rate of 0, the second one overflows in its update: its loss and gradients are finite.
class Overflow : public testing::RunTest {
 protected:
  Overflow() : RunTest(12, 24) {
    options_.training.batch_size = 8;
    options_.checkpoint = {.every_steps = 1, .every_seconds = 0, .keep = 0};
    options_.evaluation.holdout = {};
    options_.schedule.warmup_steps = 1;
    options_.schedule.warmup_from_zero_step = true;
    dlrmv4_of(options_).loss_weight = 1e6;
    options_.dense.max_gradient_norm = 0;
    options_.dense.config.kind = DenseOptimizerKind::sgd;
    options_.sparse.kind = RowOptimizerKind::sgd;
    options_.dense.learning_rate = options_.sparse.learning_rate = 1e-9;
  }
};

TEST_F(Overflow, OfAParameterIsNeverSavedAndTheRunGoesOnFromTheStepBefore) {
  options_.dense.learning_rate = 1e38;
  const std::string message = message_of([&] { run("run"); });
  EXPECT_THAT(message,
              AllOf(HasSubstr("step 2: nothing is saved, because parameter "), HasSubstr("not finite"),
                    HasSubstr("step_00000001 (step 1)"), HasSubstr("--resume")));
  EXPECT_THAT(testing::checkpoint_names(folder_ / "run"), ElementsAre("current", "step_00000001"));
  options_.dense.learning_rate = 1e-9;
  EXPECT_EQ(resume("run", -1, {"dense_optimizer.learning_rate"}).reason, "completed");
}

TEST_F(Overflow, OfARowIsNeverSaved) {
  options_.sparse.learning_rate = 1e38;
  EXPECT_THAT(message_of([&] { run("run"); }),
              AllOf(HasSubstr("step 2: nothing is saved, because the row of id "),
                    HasSubstr("embedding table item"), HasSubstr("step_00000001 (step 1)")));
  EXPECT_THAT(testing::checkpoint_names(folder_ / "run"), ElementsAre("current", "step_00000001"));
}

TEST_F(Overflow, WithoutAnEarlierCheckpointTheMessageSaysSo) {
  options_.dense.learning_rate = 1e38;
  options_.checkpoint.every_steps = 2;
  EXPECT_THAT(message_of([&] { run("run"); }), HasSubstr("No checkpoint was saved before"));
}

TEST_F(Overflow, InAStepWithoutASaveIsFoundByTheNextStep) {
  options_.dense.learning_rate = 1e38;
  options_.checkpoint.every_steps = 3;
  EXPECT_THAT(message_of([&] { run("run"); }),
              AllOf(HasSubstr("step 3: "), HasSubstr("the first bad tensor is parameter ")));
}

// Makes the gradients of the rows of users overflow.
void overflow_rows_of_users(Learner& learner) {
  EmbeddingTable& table = learner.tables[1];
  ASSERT_EQ(table.config().name, "user");
  const std::int64_t dim = table.config().dim;
  std::vector<std::int64_t> ids;
  for (std::int64_t id = 0; id < table.config().rows; ++id)
    if (table.owners().owns(id)) ids.push_back(id);
  const std::vector<float> zeros(ids.size() * static_cast<std::size_t>(dim), 0.0f);
  table.restore(ids, zeros.data(), nullptr);  // keeps the tokens small
  Tensor weight = learner.model->parameters().find("preprocessor.contextual.weight").value;
  std::fill_n(weight.mutable_data<float>(), weight.size(), 1e38f);
}

// The rows' gradient is the product of a huge weight and a gradient of ordinary size: every dense gradient is
// finite.
TEST_F(Overflow, OfARowsGradientStopsTheStepBeforeAnythingIsUpdated) {
  options_.schedule.warmup_steps = 0;
  Experiment experiment(options_);
  Learner& learner = experiment.learner();
  overflow_rows_of_users(learner);
  const std::vector<std::int64_t> anchors = experiment.anchors().training.first(8);
  const Tensor before = learner.model->parameters().find("head.1.bias").value.copy();
  EXPECT_THAT(message_of<NotFiniteError>([&] { testing::step_on(experiment, anchors); }),
              AllOf(HasSubstr("step 1: the gradient of id "), HasSubstr("in embedding table user")));
  EXPECT_EQ(learner.model->parameters().find("head.1.bias").value.data<float>()[0], before.data<float>()[0]);
}

// One rank has the row; no rank updates anything, and none is lost.
TEST_F(Overflow, OfARowsGradientOnOneRankStopsAllRanksBeforeAnythingIsUpdated) {
  options_.schedule.warmup_steps = 0;
  options_.tables.ranks = TableRanks::table;
  std::array<std::string, 3> messages;
  run_ranks(3, [&](Communicator& comm) {
    Experiment experiment(options_, comm);
    Learner& learner = experiment.learner();
    overflow_rows_of_users(learner);
    const std::vector<std::int64_t> anchors = experiment.anchors().training.first(9);
    const Tensor bias = learner.model->parameters().find("head.1.bias").value;
    const float before = bias.data<float>()[0];
    messages[static_cast<std::size_t>(comm.rank())] = message_of<NotFiniteError>([&] {
      testing::step_on_parts(
          experiment, {std::span(anchors).subspan(3 * static_cast<std::size_t>(comm.rank()), 3)}, 9, 0, comm);
    });
    EXPECT_EQ(bias.data<float>()[0], before);
  });
  EXPECT_THAT(messages[0], AllOf(HasSubstr("step 1: the gradient of id "),
                                 HasSubstr("in embedding table user"), HasSubstr(" (rank ")));
  EXPECT_EQ(messages[1], messages[0]);
  EXPECT_EQ(messages[2], messages[0]);
}

}  // namespace
}  // namespace hstu
