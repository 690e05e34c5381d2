#include "hstu/device/launch_list.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

namespace hstu {
namespace {

const int kKernels[2] = {};  // their addresses stand for kernels

struct Numbers {  // without padding, whose bytes would differ
  std::int64_t rows;
  double factor;
};

void add(LaunchList& list, const int& kernel, std::uint8_t small, const Numbers& numbers,
         unsigned blocks = 1) {
  const LaunchArgument arguments[] = {std::as_bytes(std::span(&small, 1)),
                                      std::as_bytes(std::span(&numbers, 1))};
  list.add({.what = "test", .kernel = &kernel, .blocks = {blocks, 1, 1}}, arguments);
}

TEST(LaunchList, KeepsCopiesOfArguments) {
  LaunchList list;
  for (std::int64_t i = 0; i < 100; ++i) add(list, kKernels[0], static_cast<std::uint8_t>(i), {i, 0.5});
  ASSERT_EQ(list.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) {
    const std::vector<void*> arguments = list.arguments(i);
    ASSERT_EQ(arguments.size(), 2u);
    Numbers numbers{};
    std::memcpy(&numbers, arguments[1], sizeof numbers);
    EXPECT_EQ(*static_cast<const std::uint8_t*>(arguments[0]), i);
    EXPECT_EQ(numbers.rows, static_cast<std::int64_t>(i));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arguments[1]) % alignof(Numbers), 0u);
  }
  list.clear();
  EXPECT_EQ(list.size(), 0u);
}

// Trap: a launch of an earlier step that is used again although one of its numbers has changed.
TEST(LaunchList, ALaunchIsTheSameOnlyWithTheSameSizesAndArguments) {
  const auto is_same = [](std::uint8_t small, const Numbers& numbers, unsigned blocks) {
    LaunchList before, now;
    add(before, kKernels[0], 3, {7, 0.5}, 2);
    add(now, kKernels[0], small, numbers, blocks);
    return now.is_same(0, before);
  };
  EXPECT_TRUE(is_same(3, {7, 0.5}, 2));
  EXPECT_FALSE(is_same(4, {7, 0.5}, 2));
  EXPECT_FALSE(is_same(3, {8, 0.5}, 2));
  EXPECT_FALSE(is_same(3, {7, 0.25}, 2));
  EXPECT_FALSE(is_same(3, {7, 0.5}, 1));
}

TEST(LaunchList, ComparesKernelsAndTheWayOfLaunchingThem) {
  const auto list = [](const std::vector<LaunchShape>& shapes) {
    LaunchList launches;
    for (const LaunchShape& shape : shapes) launches.add(shape, {});
    return launches;
  };
  const LaunchShape one{.kernel = &kKernels[0]}, other{.kernel = &kKernels[1]},
      larger{.kernel = &kKernels[0], .blocks = {9, 1, 1}}, beside{.kernel = &kKernels[1], .beside = true},
      clusters{.kernel = &kKernels[1], .cluster = 2};
  const LaunchList both = list({one, other});
  EXPECT_TRUE(both.has_kernels_of(list({larger, other})));
  for (const LaunchShape& second : {one, beside, clusters})
    EXPECT_FALSE(both.has_kernels_of(list({one, second})));
  EXPECT_FALSE(both.has_kernels_of(list({one})));
  EXPECT_FALSE(both.has_kernels_of(list({other, one})));
}

// LaunchGroups has the address of no object here.
TEST(LaunchList, ItsEventsAreKeptUntilTheListForgetsThem) {
  const auto groups = reinterpret_cast<LaunchGroups*>(std::uintptr_t{64});
  std::array<std::shared_ptr<GpuEvent>, 3> events;
  for (auto& event : events) {
    event = std::make_shared<GpuEvent>();
    event->kept_by = groups;
  }
  LaunchList list;
  EXPECT_TRUE(list.empty());
  list.add(events[0]);
  EXPECT_FALSE(list.empty());
  EXPECT_EQ(list.size(), 0u) << "an event is no launch";
  list.clear();
  EXPECT_EQ(events[0]->kept_by, nullptr);
  EXPECT_TRUE(list.empty());
  {
    LaunchList other;
    other.add(events[1]);
    list = std::move(other);
    EXPECT_EQ(events[1]->kept_by, groups) << "moved with its list";
  }
  {
    LaunchList ends;
    ends.add(events[2]);
  }
  EXPECT_EQ(events[2]->kept_by, nullptr);
  EXPECT_FALSE(events[2]->is_recorded);
  EXPECT_EQ(list.events().size(), 1u);
}

}  // namespace
}  // namespace hstu
