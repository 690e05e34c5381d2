#include "hstu/balance/partition.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <gtest/gtest.h>

#include "hstu/balance/work.h"
#include "hstu/base/error.h"
#include "hstu/base/random.h"

namespace hstu {
namespace {

using Work = std::vector<std::int64_t>;

// Lengths with a long tail, as histories have them.
Work random_work(std::size_t samples, std::uint64_t seed) {
  RandomStream random{seed};
  Work work;
  for (std::size_t i = 0; i < samples; ++i) {
    const double tokens = std::min(4096.0, 16.0 / (random.uniform() + 0.004));
    work.push_back(nvidia_layer_work(4, 64, static_cast<std::int64_t>(tokens)));
  }
  return work;
}

void expect_every_sample_once(const Partition& parts, std::size_t samples) {
  std::vector<std::int32_t> all;
  for (const auto& part : parts) {
    EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<std::int32_t> expected(samples);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

// The steps of the published description, with lists in place of a heap.
Partition naive_equal_size(const Work& work, int ranks) {
  using Item = std::pair<std::int32_t, std::int64_t>;
  using Set = std::tuple<std::int64_t, std::size_t, std::vector<Item>>;
  using State = std::vector<Set>;
  std::vector<std::pair<std::int64_t, std::int32_t>> sorted;
  for (std::size_t i = 0; i < work.size(); ++i) sorted.emplace_back(work[i], static_cast<std::int32_t>(i));
  std::sort(sorted.begin(), sorted.end());
  std::vector<State> states;
  const auto k = static_cast<std::size_t>(ranks);
  for (std::size_t at = 0; at < sorted.size(); at += k) {
    State state;
    for (std::size_t j = 0; j < k; ++j)
      state.emplace_back(sorted[at + j].first, 1u,
                         std::vector<Item>{{sorted[at + j].second, sorted[at + j].first}});
    std::sort(state.rbegin(), state.rend());
    states.push_back(state);
  }
  const auto take = [&] {
    const auto before = [](const State& a, const State& b) {
      const std::int64_t x = std::get<0>(a.front()) - std::get<0>(a.back());
      const std::int64_t y = std::get<0>(b.front()) - std::get<0>(b.back());
      return x != y ? x < y : a.front() < b.front();
    };
    const auto first = std::max_element(states.begin(), states.end(), before);
    State state = *first;
    states.erase(first);
    return state;
  };
  while (states.size() > 1) {
    State a = take();
    const State b = take();
    for (std::size_t i = 0; i < k; ++i) {
      auto& [sum, count, items] = a[i];
      const auto& [other_sum, other_count, other_items] = b[k - 1 - i];
      sum += other_sum;
      count += other_count;
      items.insert(items.end(), other_items.begin(), other_items.end());
    }
    std::sort(a.rbegin(), a.rend());
    states.push_back(a);
  }
  Partition parts(k);
  for (std::size_t r = 0; r < k; ++r) {
    for (const Item& item : std::get<2>(states.front()[r])) parts[r].push_back(item.first);
    std::sort(parts[r].begin(), parts[r].end());
  }
  return parts;
}

TEST(EqualSizePartition, EqualsTheNaiveForm) {
  for (const int ranks : {1, 2, 3, 8, 16}) {
    const auto n = static_cast<std::size_t>(ranks) * 12;
    for (std::uint64_t seed = 0; seed < 7; ++seed) {
      Work work = random_work(n, seed);
      if (seed == 3) work.assign(n, 1000);
      if (seed == 4) work.assign(n, 0);
      if (seed >= 5)
        for (std::int64_t& w : work) w %= 4;  // many ties
      EXPECT_EQ(equal_size_partition(work, ranks), naive_equal_size(work, ranks)) << ranks << ' ' << seed;
    }
  }
}

TEST(EqualSizePartition, GivesEveryRankTheSameNumber) {
  const Work work = random_work(96, 1);
  const Partition parts = equal_size_partition(work, 8);
  expect_every_sample_once(parts, work.size());
  for (const auto& part : parts) EXPECT_EQ(part.size(), 12u);
  EXPECT_THROW(equal_size_partition(work, 7), UsageError);
}

TEST(BalancedPartition, EqualsTheNaiveForm) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Work work = random_work(200, seed);
    if (seed >= 4)
      for (std::int64_t& w : work) w = w % 4 - 1;  // many ties, and work below 0
    std::vector<std::int32_t> order(work.size());
    std::iota(order.begin(), order.end(), 0);
    const auto of = [&](std::int32_t i) { return work[static_cast<std::size_t>(i)]; };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return of(a) > of(b); });
    Partition expected(7);
    Work sums(7, 0);
    for (const std::int32_t i : order) {
      const auto rank = static_cast<std::size_t>(std::min_element(sums.begin(), sums.end()) - sums.begin());
      expected[rank].push_back(i);
      sums[rank] += of(i);
    }
    for (auto& part : expected) std::sort(part.begin(), part.end());
    EXPECT_EQ(balanced_partition(work, 7), expected) << seed;
  }
}

TEST(BalancedPartition, IsNeverWorseThanSlicesAndNearlyEven) {
  for (const int ranks : {2, 7, 16, 64}) {
    const Work work = random_work(static_cast<std::size_t>(ranks) * 32, 2);
    const Partition parts = balanced_partition(work, ranks);
    expect_every_sample_once(parts, work.size());
    EXPECT_LE(imbalance(work, parts), imbalance(work, contiguous_partition(work.size(), ranks)));
    // No partition is better than the mean, or than the longest sample on a rank of its own.
    const double mean =
        static_cast<double>(std::accumulate(work.begin(), work.end(), std::int64_t{0})) / ranks;
    const double longest = static_cast<double>(*std::max_element(work.begin(), work.end())) / mean;
    EXPECT_LT(imbalance(work, parts), 1.02 * std::max(1.0, longest)) << ranks;
  }
}

TEST(BalancedPartition, KeepsSamplesWithoutWorkAndRanksWithoutSamples) {
  expect_every_sample_once(balanced_partition(Work{0, 0, 5, 0}, 2), 4);
  const Partition few = balanced_partition(Work{3, 2}, 4);
  expect_every_sample_once(few, 2);
  EXPECT_EQ(few.size(), 4u);
  expect_every_sample_once(balanced_partition({}, 3), 0);
}

TEST(ContiguousPartition, DividesUnevenNumbers) {
  const Partition parts = contiguous_partition(7, 4);
  expect_every_sample_once(parts, 7);
  EXPECT_EQ(parts[0].size(), 1u);
  EXPECT_EQ(parts[3].size(), 2u);
}

TEST(Work, EqualsThePublishedIntegers) {
  EXPECT_EQ(nvidia_layer_work(4, 256, 0), 0);
  EXPECT_EQ(nvidia_layer_work(4, 256, 10),
            2LL * 10 * 4096 * 1024 + 2LL * 10 * 10 * 1024 * 4 * 2 + 2LL * 10 * 1024 * 1024);
}

}  // namespace
}  // namespace hstu
