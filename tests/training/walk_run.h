// Runs of models that predict the next item, on a log of walks from item to item.
#pragma once

#include <string>
#include <vector>

#include "training/ranked_run.h"
#include "training/walks.h"

namespace hstu::testing {

class WalkRun : public RankedRun {
 protected:
  WalkRun() {
    write_walks(folder_ / "walks");
    options_.data.path = folder_ / "walks";
    options_.data.options.window_seconds = 0;
    options_.data.options.anchor_stride = 0;
    options_.data.options.min_history = 1;
    options_.features.context.clear();
    options_.training = {.batch_size = 32, .epochs = 3};
    options_.evaluation = {};
    options_.evaluation.holdout.split = LastSplit::valid;
    options_.evaluation.every_data_fraction = 1;
    options_.checkpoint = {.every_steps = 3, .every_seconds = 0, .keep = 0, .best = "ndcg@10"};
    options_.metrics.every_steps = 1;
  }

  std::vector<double> losses(const std::string& name) const {
    std::vector<double> losses;
    for (const Json& line : log(name, "train")) losses.push_back(line.at("loss").get<double>());
    return losses;
  }
  // Two runs of at least `steps` steps, whose losses differ by no more than `relative` of the expected ones.
  void expect_losses_near(const std::string& name, const std::string& expected_name, double relative,
                          std::size_t steps = 0) const {
    const std::vector<double> expected = losses(expected_name), found = losses(name);
    ASSERT_EQ(found.size(), expected.size()) << name;
    EXPECT_GE(found.size(), steps) << name;
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], relative * expected[i]) << name << " " << i;
  }
  // Two runs that train the same model but for the order of sums.
  void expect_same_losses(const std::string& name, const std::string& expected_name,
                          double tolerance = 1e-5) const {
    const std::vector<double> expected = losses(expected_name), found = losses(name);
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], tolerance) << name << " " << i;
  }
};

}  // namespace hstu::testing
