#include "hstu/training/trained_samples.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "training/run_fixture.h"

namespace hstu {
namespace {

// Ten events of each of 40 users, the last fifth held out; another dataset has these and ten more.
class TrainedSamples : public testing::RunTest {
 protected:
  TrainedSamples() : RunTest(40, 10) {
    options_.features.item_rows = 12;
    options_.features.context[0].rows = 40;
    testing::write_small_dataset(folder_ / "other", 40, 10);
    testing::extend_small_dataset(folder_ / "other", 10, 20);
  }

  // The positions in the other dataset that the newest checkpoint of a run has trained on.
  std::vector<std::int64_t> trained(const std::string& name) const {
    const Checkpoint checkpoint(find_checkpoint(folder_ / name / "checkpoints", -1));
    Experiment experiment(options_, open_data_of(options_, checkpoint));
    const RunState state = load_run(checkpoint, experiment);
    const Dataset other(folder_ / "other");
    std::vector<std::int64_t> all(static_cast<std::size_t>(other.events()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    const auto found = trained_samples(options_, *open_data_of(options_, checkpoint), state.next, other, all);
    std::vector<std::int64_t> positions;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (found[i] != 0) positions.push_back(all[i]);
    return positions;
  }
};

TEST_F(TrainedSamples, AreThoseOfTheRunAndNotItsHoldout) {
  run("run");
  const Dataset other(folder_ / "other");
  const std::vector<std::int64_t> positions = trained("run");
  EXPECT_EQ(positions.size(), 320u);
  for (const std::int64_t p : positions) EXPECT_LT(other.time()[p], 8'000 + 40) << p;
}

TEST_F(TrainedSamples, OfARunThatGoesOnAreThoseOfItsStepsSoFar) {
  options_.training.max_steps = 5;
  run("run");
  EXPECT_EQ(trained("run").size(), 5u * 16);
}

TEST_F(TrainedSamples, OfLaterEpochsAreTheSame) {
  options_.training.epochs = 3;
  options_.training.max_steps = 30;  // in the second epoch
  run("run");
  EXPECT_EQ(trained("run").size(), 320u);
}

}  // namespace
}  // namespace hstu
