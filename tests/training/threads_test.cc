// A whole run has the same bytes for any number of threads.
#include "hstu/base/threads.h"

#include <gtest/gtest.h>

#include "support/kind_options.h"
#include "training/run_fixture.h"

namespace hstu {
namespace {

// Large enough that every parallel loop has several blocks.
class Threads : public testing::RunTest {
 protected:
  Threads() : RunTest(60, 60), before_(threads()) {
    options_.data.options.history_length = 40;
    dlrmv4_of(options_).max_sequence = 48;
    dlrmv4_of(options_).embedding_dim = dlrmv4_of(options_).dim = 48;
    dlrmv4_of(options_).head_dim = 24;
    dlrmv4_of(options_).preprocessor_hidden = dlrmv4_of(options_).head_hidden = 64;
    options_.features.item_rows = 10;  // the largest id is 11
    options_.features.context.push_back({"user_x_item", {"user", "item"}, 500, true});
    options_.training.batch_size = 64;
    options_.training.max_steps = 20;
    options_.evaluation.every_windows = 1;
    options_.checkpoint = {.every_steps = 7, .every_seconds = 0, .keep = 0};
    options_.metrics.every_steps = 2;
  }
  ~Threads() override { set_threads(before_); }

  std::vector<std::string> lines(const std::string& name) const {
    std::vector<std::string> lines;
    for (Json line : testing::timeless_log(folder_ / name)) {
      line.erase("threads");
      lines.push_back(line.dump());
    }
    return lines;
  }

 private:
  int before_;
};

TEST_F(Threads, OneTwoAndFiveGiveTheSameCheckpointsAndTheSameLog) {
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    run(std::to_string(count));
  }
  for (const std::string other : {"2", "5"}) {
    EXPECT_EQ(lines(other), lines("1")) << other << " threads";
    EXPECT_EQ(testing::checkpoint_names(folder_ / other), testing::checkpoint_names(folder_ / "1"));
    EXPECT_EQ(testing::newest_checkpoint(folder_ / other), testing::newest_checkpoint(folder_ / "1"))
        << other << " threads";
  }
}

TEST_F(Threads, AResumeWithAnotherNumberChangesNothing) {
  set_threads(2);
  run("whole");
  interrupt("parts", "step.end", 11);
  set_threads(5);
  EXPECT_EQ(resume("parts").reason, "completed");
  expect_same_run("whole", "parts");
}

}  // namespace
}  // namespace hstu
