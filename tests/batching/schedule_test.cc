#include "hstu/batching/schedule.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "batching/small_data.h"

namespace hstu {
namespace {

using small::expect_error;
using Positions = std::vector<std::int64_t>;

// Windows of the given sizes, positions 0, 1, 2, ...
AnchorList windows(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t size : sizes) offsets.push_back(offsets.back() + size);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(offsets.back()));
  std::iota(positions.begin(), positions.end(), 0);
  return AnchorList(std::move(positions), offsets);
}

struct Made {
  BatchCursor cursor, next;
  bool window_end;
  Positions positions;
  bool operator==(const Made&) const = default;
};

std::vector<Made> all_jobs(BatchSchedule schedule) {
  std::vector<Made> made;
  while (const auto job = schedule.next()) {
    made.push_back(
        {job->cursor, job->next, job->window_end, Positions(job->positions.begin(), job->positions.end())});
  }
  return made;
}

TEST(BatchSchedule, BatchesAreSlicesOfTheirWindow) {
  const AnchorList list = windows({5, 0, 2, 4});
  const std::vector<Made> jobs = all_jobs({list, {.batch_size = 2}});
  const std::vector<Made> expected{
      {{0, 0, 0}, {0, 0, 1}, false, {0, 1}}, {{0, 0, 1}, {0, 0, 2}, false, {2, 3}},
      {{0, 0, 2}, {0, 0, 3}, true, {4}},     {{0, 2, 0}, {0, 2, 1}, true, {5, 6}},
      {{0, 3, 0}, {0, 3, 1}, false, {7, 8}}, {{0, 3, 1}, {0, 3, 2}, true, {9, 10}}};
  EXPECT_EQ(jobs, expected);
  const BatchSchedule schedule(list, {.batch_size = 2});
  EXPECT_EQ(schedule.batches_per_epoch(), 6);
  EXPECT_EQ(schedule.samples(), 11);
}

TEST(BatchSchedule, CountsTheBatchesAndSamplesThatAreLeft) {
  const AnchorList list = windows({5, 0, 2, 4, 3});
  for (const ScheduleOptions& options :
       {ScheduleOptions{.batch_size = 2, .epochs = 3},
        ScheduleOptions{.batch_size = 2, .epochs = 2, .stages = {3, 0, 2}},
        ScheduleOptions{.batch_size = 3, .drop_last = true, .epochs = 2, .first_window = 2}}) {
    BatchSchedule schedule(list, options);
    std::int64_t left = schedule.batches(), samples = schedule.samples();
    EXPECT_EQ(schedule.batches_left(), left);
    EXPECT_EQ(schedule.samples_left(), samples);
    while (const auto job = schedule.next()) {
      samples -= std::ssize(job->positions);
      EXPECT_EQ(schedule.batches_left(), --left);
      EXPECT_EQ(schedule.samples_left(), samples);
      EXPECT_EQ(BatchSchedule(list, options, job->next).batches_left(), left);
      EXPECT_EQ(BatchSchedule(list, options, job->next).samples_left(), samples);
    }
    EXPECT_EQ(left, 0);
    EXPECT_EQ(samples, 0);
    EXPECT_EQ(schedule.samples_left(), 0);
  }
  EXPECT_EQ(BatchSchedule(list, {.batch_size = 2, .epochs = 1}, {1, 3, 1}).batches_left(), 0);
}

TEST(BatchSchedule, DropLastLeavesOutWhatDoesNotFillABatch) {
  const AnchorList list = windows({5, 0, 1, 4});
  const ScheduleOptions options{.batch_size = 2, .drop_last = true};
  const std::vector<Made> jobs = all_jobs({list, options});
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_TRUE(jobs[1].window_end);
  EXPECT_EQ(jobs[1].positions, (Positions{2, 3}));
  EXPECT_EQ(jobs[2].positions, (Positions{6, 7}));  // the window of one sample has no batch
  EXPECT_EQ(BatchSchedule(list, options).samples(), 8);
}

TEST(BatchSchedule, EarlyWindowsSmallerThanABatchAndEmptyOnes) {
  const AnchorList list = windows({0, 1, 3, 0, 20, 0});
  for (const double shuffle : {0.0, 1.0}) {
    const std::vector<Made> jobs = all_jobs({list, {.batch_size = 8, .shuffle_fraction = shuffle}});
    std::vector<std::pair<std::int64_t, std::size_t>> found;  // window, samples
    found.reserve(jobs.size());
    for (const Made& job : jobs) found.emplace_back(job.cursor.window, job.positions.size());
    EXPECT_EQ(found,
              (std::vector<std::pair<std::int64_t, std::size_t>>{{1, 1}, {2, 3}, {4, 8}, {4, 8}, {4, 4}}));
    EXPECT_TRUE(jobs[0].window_end && jobs[1].window_end && jobs[4].window_end);
  }
  EXPECT_EQ(all_jobs({list, {.batch_size = 8, .drop_last = true}}).size(), 2u);
}

TEST(BatchSchedule, GoesOnInTheMiddleFromEveryCursor) {
  const AnchorList list = windows({5, 0, 2, 4, 1});
  for (const double shuffle : {0.0, 0.5, 1.0}) {
    const ScheduleOptions options{.batch_size = 2, .epochs = 3, .shuffle_fraction = shuffle, .seed = 3};
    const std::vector<Made> whole = all_jobs({list, options});
    ASSERT_EQ(whole.size(), 21u);
    for (std::size_t done = 0; done < whole.size(); ++done) {
      const std::vector<Made> rest = all_jobs({list, options, whole[done].next});
      EXPECT_EQ(rest, std::vector<Made>(whole.begin() + static_cast<std::ptrdiff_t>(done) + 1, whole.end()));
    }
  }
}

TEST(BatchSchedule, EpochsShuffleAnewAndKeepEverySample) {
  const AnchorList list = windows({50, 30});
  const std::vector<Made> jobs = all_jobs({list, {.batch_size = 100, .epochs = 2, .shuffle_fraction = 1}});
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_NE(jobs[0].positions, jobs[2].positions);
  for (const Made& job : jobs) {
    Positions sorted = job.positions;
    std::sort(sorted.begin(), sorted.end());
    const auto window = list.window(job.cursor.window);
    EXPECT_EQ(sorted, Positions(window.begin(), window.end()));
    EXPECT_NE(job.positions, sorted);
  }
}

TEST(BatchSchedule, CanBeginAtAWindowAndHaveNoEnd) {
  const AnchorList list = windows({2, 2, 2, 2});
  BatchSchedule schedule(list, {.batch_size = 2, .epochs = 0, .first_window = 1, .windows = 2});
  for (std::int64_t i = 0; i < 10; ++i) {
    const auto job = schedule.next();
    ASSERT_TRUE(job);
    EXPECT_EQ(job->cursor, (BatchCursor{i / 2, 1 + i % 2, 0}));
  }
}

TEST(BatchSchedule, RefusesWhatLeavesNoBatch) {
  const AnchorList list = windows({3, 4});
  expect_error<UsageError>([&] { BatchSchedule(list, {.batch_size = 5, .drop_last = true}); },
                           {"batch_size = 5", "holds 4 samples"});
  expect_error<UsageError>([&] { BatchSchedule(list, {.batch_size = 0}); }, {"batch_size"});
  expect_error<UsageError>([&] { BatchSchedule(list, {.first_window = 2}); }, {"windows"});
  expect_error<UsageError>([&] { BatchSchedule(list, {.shuffle_fraction = 2}); }, {"shuffle_fraction"});
  expect_error<UsageError>([&] { BatchSchedule(list, {.epochs = -1}); }, {"epochs"});
}

TEST(BatchSchedule, RefusesACursorOfOtherData) {
  const AnchorList list = windows({3, 4});
  expect_error<Error>([&] { BatchSchedule(list, {.batch_size = 2}, {0, 2, 0}); }, {"window 2"});
  expect_error<Error>([&] { BatchSchedule(list, {.batch_size = 2}, {0, 1, 3}); }, {"batch 3"});
}

}  // namespace
}  // namespace hstu
