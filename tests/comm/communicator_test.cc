#include "hstu/comm/communicator.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <tuple>

#include <gtest/gtest.h>

#include "comm/tcp_ranks.h"
#include "hstu/base/random.h"
#include "hstu/comm/thread_group.h"

namespace hstu {
namespace {

using Words = std::vector<std::int64_t>;
using Body = std::function<void(Communicator&)>;

// Rank r brings r elements, so that rank 0 brings none.
Words part_of(int rank) {
  Words part;
  for (int i = 0; i < rank; ++i) part.push_back(100 * rank + i);
  return part;
}

enum class Form { threads, tcp };

class Ranks : public ::testing::TestWithParam<std::tuple<Form, int>> {
 protected:
  static int ranks() { return std::get<1>(GetParam()); }
  static void run_group(const Body& body) {
    if (std::get<0>(GetParam()) == Form::tcp)
      run_tcp_ranks(ranks(), body);
    else
      run_ranks(ranks(), body);
  }
};

// So many values that each rank sums a part of them, or so few that it sums all.
template <typename T>
void expect_sums(int ranks, const std::function<void(const Body&)>& run_group) {
  for (const std::size_t count : {std::size_t{101}, std::size_t{20'001}}) {
    // Kept in memory, or the compiler would fuse a product with the sum below.
    std::vector<std::vector<T>> terms;
    for (int rank = 0; rank < ranks; ++rank) {
      RandomStream random{static_cast<std::uint64_t>(rank)};
      terms.emplace_back();
      for (std::size_t i = 0; i < count; ++i)
        terms.back().push_back(static_cast<T>(random.normal() * (rank % 2 == 0 ? 1e6 : 1e-3)));
    }
    std::vector<T> expected(count, 0);
    for (const std::vector<T>& of_rank : terms)
      for (std::size_t i = 0; i < count; ++i) expected[i] += of_rank[i];
    std::atomic<int> right = 0;
    run_group([&](Communicator& comm) {
      std::vector<T> values = terms[static_cast<std::size_t>(comm.rank())];
      comm.all_reduce_sum(std::span(values));
      right += values == expected ? 1 : 0;
    });
    EXPECT_EQ(right, ranks);
  }
}

TEST_P(Ranks, SumInTheOrderOfRanksOnEveryRank) {
  expect_sums<float>(ranks(), run_group);
  expect_sums<double>(ranks(), run_group);
  expect_sums<std::int32_t>(ranks(), run_group);
  expect_sums<std::int64_t>(ranks(), run_group);
}

TEST_P(Ranks, GatherUnequalParts) {
  Words expected;
  for (int rank = 0; rank < ranks(); ++rank)
    for (const std::int64_t x : part_of(rank)) expected.push_back(x);
  std::atomic<int> right = 0;
  run_group([&](Communicator& comm) {
    const Words mine = part_of(comm.rank());
    right += comm.all_gather(std::span<const std::int64_t>(mine)) == expected ? 1 : 0;
  });
  EXPECT_EQ(right, ranks());
}

// Rank r sends (r + s) % 3 elements to rank s.
TEST_P(Ranks, ExchangeUnequalParts) {
  const auto message = [](int from, int to) {
    return Words(static_cast<std::size_t>((from + to) % 3), 1000 * from + to);
  };
  std::atomic<int> right = 0;
  run_group([&](Communicator& comm) {
    Words send, send_counts, expected, expected_counts, counts;
    for (int other = 0; other < ranks(); ++other) {
      const Words to = message(comm.rank(), other), from = message(other, comm.rank());
      send.insert(send.end(), to.begin(), to.end());
      send_counts.push_back(static_cast<std::int64_t>(to.size()));
      expected.insert(expected.end(), from.begin(), from.end());
      expected_counts.push_back(static_cast<std::int64_t>(from.size()));
    }
    const Words received = comm.all_to_all(std::span<const std::int64_t>(send), send_counts, &counts);
    right += received == expected && counts == expected_counts ? 1 : 0;
  });
  EXPECT_EQ(right, ranks());
}

TEST_P(Ranks, BroadcastFromAnyRank) {
  std::atomic<int> right = 0;
  run_group([&](Communicator& comm) {
    bool all = true;
    for (int root = 0; root < ranks(); ++root) {
      Words values(3, comm.rank());
      comm.broadcast(std::span(values), root);
      all = all && values == Words(3, root);
    }
    right += all ? 1 : 0;
  });
  EXPECT_EQ(right, ranks());
}

// Ranks that come to the collectives at very different times never see each other's next one.
TEST_P(Ranks, StayInStepWhateverTheirDelays) {
  std::atomic<int> wrong = 0;
  run_group([&](Communicator& comm) {
    RandomStream random{static_cast<std::uint64_t>(comm.rank())};
    for (std::int64_t i = 0; i < 300; ++i) {
      for (std::uint64_t spins = random.below(2000); spins > 0; --spins)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      if (comm.sum(i) != i * ranks()) ++wrong;
      const std::int64_t mine = i + comm.rank();
      const Words all = comm.all_gather(std::span<const std::int64_t>(&mine, 1));
      if (all.front() != i || all.back() != i + ranks() - 1) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Groups, Ranks,
                         ::testing::Combine(::testing::Values(Form::threads, Form::tcp),
                                            ::testing::Values(1, 2, 3, 7)),
                         [](const auto& instance) {
                           return fmt::format("{}{}",
                                              std::get<0>(instance.param) == Form::tcp ? "Tcp" : "Threads",
                                              std::get<1>(instance.param));
                         });

TEST(OneRank, IsAGroupOfItself) {
  EXPECT_EQ(one_rank().size(), 1);
  EXPECT_EQ(one_rank().sum(2.5), 2.5);
  const Words mine{4, 5};
  EXPECT_EQ(one_rank().all_gather(std::span<const std::int64_t>(mine)), mine);
  const Words counts{2};
  EXPECT_EQ(one_rank().all_to_all(std::span<const std::int64_t>(mine), counts), mine);
}

TEST(ThreadGroup, FailsOnEveryRankWhenOneFails) {
  std::atomic<int> told = 0;
  const auto run = [&] {
    run_ranks(3, [&](Communicator& comm) {
      if (comm.rank() == 1) fail("rank 1 broke");
      try {
        comm.barrier();
        comm.barrier();
      } catch (const Error&) {
        ++told;
        throw;
      }
    });
  };
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace hstu
