#include "hstu/run/cadence.h"

#include <chrono>

#include <gtest/gtest.h>

namespace hstu {
namespace {

using std::chrono::seconds;

// The state after `step` steps, with 10 batches per window.
RunState after(std::int64_t step) {
  RunState state;
  state.step = step;
  state.next = {0, (step - 1) / 10, (step - 1) % 10 + 1};
  state.window_end = step % 10 == 0 && step > 0;
  state.windows_done = step / 10;
  return state;
}

const Clock::time_point kStart{};

std::string due(const CheckpointSection& options, std::int64_t step, seconds elapsed = seconds(0)) {
  return SaveCadence(options, kStart).due(after(step), kStart + elapsed).value_or("");
}

std::int64_t first_due(const EvaluationCadence& cadence) {
  std::int64_t step = 1;
  while (!cadence.due(after(step))) ++step;
  return step;
}

TEST(SaveCadence, EachKindFiresAtItsOwnMultiples) {
  const CheckpointSection batches{.every_window_batches = 4, .every_seconds = 0};
  EXPECT_EQ(due(batches, 4), "in_window_batch");
  EXPECT_EQ(due(batches, 12), "") << "the count starts at 0 in each window";
  EXPECT_EQ(due(batches, 14), "in_window_batch");
  const CheckpointSection steps{.every_steps = 4, .every_seconds = 0};
  EXPECT_EQ(due(steps, 12), "global_step");
  EXPECT_EQ(due(steps, 13), "");
  const CheckpointSection time{.every_seconds = 60};
  EXPECT_EQ(due(time, 3, seconds(59)), "");
  EXPECT_EQ(due(time, 3, seconds(60)), "time_interval");
  const CheckpointSection windows{.every_seconds = 0, .every_windows = 2};
  EXPECT_EQ(due(windows, 20), "end_of_window");
  EXPECT_EQ(due(windows, 10), "");
  EXPECT_EQ(due(windows, 21), "");
  EXPECT_EQ(due({.every_seconds = 0}, 20, seconds(1 << 20)), "");
}

TEST(SaveCadence, TheFirstReasonThatHoldsNamesTheSave) {
  CheckpointSection all{
      .every_window_batches = 10, .every_steps = 10, .every_seconds = 1, .every_windows = 1};
  EXPECT_EQ(due(all, 10, seconds(5)), "in_window_batch");
  all.every_window_batches = 0;
  EXPECT_EQ(due(all, 10, seconds(5)), "global_step");
  all.every_steps = 0;
  EXPECT_EQ(due(all, 10, seconds(5)), "time_interval");
  EXPECT_EQ(due(all, 10, seconds(0)), "end_of_window");
}

TEST(SaveCadence, StepZeroNeverFires) {
  EXPECT_EQ(due({1, 1, 1, 1, 1}, 0, seconds(100)), "");
}

TEST(SaveCadence, TimeCountsFromTheLastSaveOnAClockThatNeverGoesBack) {
  static_assert(Clock::is_steady);
  SaveCadence cadence({.every_seconds = 60}, kStart);
  cadence.saved(kStart + seconds(50));
  EXPECT_FALSE(cadence.due(after(3), kStart + seconds(109)));
  EXPECT_TRUE(cadence.due(after(3), kStart + seconds(110)));
}

// Steps per epoch, interval, first step and first evaluation of the DLRMv4 reference at three batch sizes.
TEST(EvaluationCadence, FractionsAreRoundedUpToSteps) {
  struct Case {
    std::int64_t steps;
    double skip;
    std::int64_t interval, first_step, first_evaluation;
  };
  for (const Case& c : {Case{279'643, 0.025, 280, 6992, 25}, Case{139'821, 0.0303, 140, 4237, 31},
                        Case{69'910, 0.041, 70, 2867, 41}}) {
    EvaluationSection options;
    options.every_data_fraction = 0.001;
    options.skip_until_fraction = c.skip;
    EXPECT_EQ(first_due(EvaluationCadence(options, c.steps)), c.first_evaluation * c.interval);
    options.skip_until_fraction = 0;
    EXPECT_EQ(first_due(EvaluationCadence(options, c.steps)), c.interval);
    EvaluationSection by_windows;
    by_windows.every_windows = 1;
    by_windows.skip_until_fraction = c.skip;
    const EvaluationCadence windows(by_windows, c.steps);
    RunState state;
    state.window_end = true;
    state.windows_done = 1;
    state.step = c.first_step - 1;
    EXPECT_FALSE(windows.due(state));
    state.step = c.first_step;
    EXPECT_TRUE(windows.due(state));
  }
  EvaluationSection tenth;
  tenth.every_data_fraction = 0.1;
  EXPECT_EQ(first_due(EvaluationCadence(tenth, 30)), 3) << "not 4 because of the rounding of 0.1";
  EXPECT_EQ(first_due(EvaluationCadence(tenth, 2)), 1) << "never zero";
}

TEST(EvaluationCadence, WindowsCountWhenTheyEndAndNotBeforeTheSkip) {
  EvaluationSection options;
  options.every_windows = 2;
  options.skip_until_fraction = 0.3;
  const EvaluationCadence cadence(options, 100);
  EXPECT_FALSE(cadence.due(after(20))) << "before 30 % of the epoch";
  EXPECT_FALSE(cadence.due(after(30)));
  EXPECT_TRUE(cadence.due(after(40)));
  EXPECT_FALSE(cadence.due(after(41)));
  EXPECT_FALSE(EvaluationCadence({}, 100).due(after(40)));
}

}  // namespace
}  // namespace hstu
