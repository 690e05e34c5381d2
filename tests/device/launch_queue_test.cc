#include "hstu/device/launch_queue.h"

#include <chrono>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hstu {
namespace {

const int kKernel = 0;  // its address stands for a kernel

void add(LaunchQueue& queue, LaunchList& list, int number) {
  const LaunchArgument argument = std::as_bytes(std::span(&number, 1));
  list.add({.what = "test", .kernel = &kKernel}, {&argument, 1});
  queue.add(list);
}
int number_of(const LaunchList& list) {
  return *static_cast<const int*>(list.arguments(0).front());
}

TEST(LaunchQueue, PutsListsInTheirOrder) {
  std::vector<int> put;
  LaunchQueue queue([&](LaunchList& list) { put.push_back(number_of(list)); });
  LaunchList list;
  std::vector<int> all;
  for (int i = 0; i < 500; ++i) {
    add(queue, list, i);
    EXPECT_EQ(list.size(), 0u);
    all.push_back(i);
    if (i % 7 == 0) {
      queue.finish();
      ASSERT_EQ(put, all);
    }
    if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the thread falls asleep
  }
  queue.finish();
  EXPECT_EQ(put, all);
}

TEST(LaunchQueue, AnErrorIsThrownOnceAndLosesWhatFollows) {
  std::vector<int> put;
  LaunchQueue queue([&](LaunchList& list) {
    if (number_of(list) == 1) throw std::runtime_error("no GPU");
    put.push_back(number_of(list));
  });
  LaunchList list;
  for (const int i : {0, 1, 2}) add(queue, list, i);
  EXPECT_THROW(queue.finish(), std::runtime_error);
  EXPECT_EQ(put, std::vector<int>{0});
  add(queue, list, 3);
  queue.finish();
  EXPECT_EQ(put, (std::vector<int>{0, 3}));
}

TEST(LaunchQueue, EndsWhenAllListsWerePut) {
  int put = 0;
  {
    LaunchQueue queue([&](LaunchList&) { ++put; });
    LaunchList list;
    for (int i = 0; i < 20; ++i) add(queue, list, i);
  }
  EXPECT_EQ(put, 20);
}

}  // namespace
}  // namespace hstu
