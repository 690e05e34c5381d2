// Groups that are split from a communicator.
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/tcp_ranks.h"
#include "hstu/base/random.h"
#include "hstu/base/threads.h"
#include "hstu/comm/mpi_transport.h"
#include "hstu/comm/thread_group.h"
#include "sanitizers.h"

namespace hstu::testing_split {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Body = std::function<void(Communicator&)>;
using RunGroup = std::function<void(int ranks, const Body&)>;

// Three divisions of 2 x 2 x 2 ranks, in each of which a rank has another neighbour; and one into unequal
// groups.
struct Crossing {
  const char* name;
  int (*color)(int rank);
};
constexpr std::array<Crossing, 4> kCrossings{{{"tensor", [](int r) { return r / 2; }},
                                              {"context", [](int r) { return r / 4 * 2 + r % 2; }},
                                              {"replicas", [](int r) { return r % 4; }},
                                              {"thirds", [](int r) { return r % 3; }}}};
constexpr int kRanks = 8;

using Groups = std::vector<std::unique_ptr<Communicator>>;  // of a rank, one of each crossing

Groups groups_of(Communicator& world) {
  Groups groups;
  groups.reserve(kCrossings.size());
  for (const Crossing& crossing : kCrossings)
    groups.push_back(world.split(crossing.color(world.rank()), crossing.name));
  return groups;
}

int size_of_group(const Crossing& crossing, int color) {
  int size = 0;
  for (int r = 0; r < kRanks; ++r) size += crossing.color(r) == color ? 1 : 0;
  return size;
}

std::vector<double> numbers(RandomStream& random, std::size_t n) {
  std::vector<double> values(n);
  for (double& x : values) x = random.normal() * 1e6;
  return values;
}

void append(const std::vector<double>& some, std::vector<double>& all) {
  all.insert(all.end(), some.begin(), some.end());
}

// What a rank sees of all collectives in an order that the group knows. `delays`: of its own.
std::vector<double> run_collectives(Communicator& comm, std::uint64_t group, RandomStream delays) {
  RandomStream common{group}, mine{derive_key(group, std::to_string(comm.rank()))};
  std::vector<double> seen;
  for (int i = 0; i < 40; ++i) {
    if (const std::uint64_t us = delays.below(300); us < 100)
      std::this_thread::sleep_for(std::chrono::microseconds(us));
    // Some are larger than what a connection holds.
    const std::size_t n = common.below(10) == 0 ? 60'000 : common.below(40);
    switch (common.below(5)) {
      case 0: {
        std::vector<double> values = numbers(mine, n);
        comm.all_reduce_sum(std::span(values));
        append(values, seen);
        break;
      }
      case 1:
        append(comm.all_gather(std::span<const double>(numbers(mine, n + mine.below(3)))), seen);
        break;
      case 2: {
        std::vector<std::int64_t> counts, received;
        std::size_t all = 0;
        for (int r = 0; r < comm.size(); ++r) {
          counts.push_back(static_cast<std::int64_t>(mine.below(n + 1)));
          all += static_cast<std::size_t>(counts.back());
        }
        append(comm.all_to_all(std::span<const double>(numbers(mine, all)), counts, &received), seen);
        for (const std::int64_t count : received) seen.push_back(static_cast<double>(count));
        break;
      }
      case 3: {
        std::vector<double> values = numbers(mine, n);
        comm.broadcast(std::span(values),
                       static_cast<int>(common.below(static_cast<std::uint64_t>(comm.size()))));
        append(values, seen);
        break;
      }
      default:
        comm.barrier();
    }
  }
  return seen;
}

std::uint64_t key_of(const Crossing& crossing, int color) {
  return derive_key(static_cast<std::uint64_t>(color), crossing.name);
}

// [crossing][rank of the world]: what the ranks of each group see as a world of their own.
std::vector<std::vector<std::vector<double>>> seen_in_separate_worlds() {
  std::vector<std::vector<std::vector<double>>> seen;
  for (const Crossing& crossing : kCrossings) {
    std::vector<std::vector<double>> of_ranks(kRanks);
    for (int color = 0; color < kRanks; ++color) {
      const int size = size_of_group(crossing, color);
      if (size == 0) continue;
      run_ranks(size, [&](Communicator& comm) {
        const std::vector<double> mine = run_collectives(comm, key_of(crossing, color), {});
        for (int r = 0, member = 0; r < kRanks; ++r)
          if (crossing.color(r) == color && member++ == comm.rank())
            of_ranks[static_cast<std::size_t>(r)] = mine;
      });
    }
    seen.push_back(of_ranks);
  }
  return seen;
}

// All groups at once, each on a thread of its own, and the world beside them. Gives the number of groups that
// saw what they see alone.
int run_crossed_groups(Communicator& world, const std::vector<std::vector<std::vector<double>>>& expected) {
  std::atomic<int> right = 0;
  const Groups groups = groups_of(world);
  {
    std::vector<std::jthread> threads;
    for (std::size_t g = 0; g < kCrossings.size(); ++g) {
      threads.emplace_back([&, g] {
        const RandomStream delays{derive_key(static_cast<std::uint64_t>(world.rank()), kCrossings[g].name)};
        const std::uint64_t key = key_of(kCrossings[g], kCrossings[g].color(world.rank()));
        right +=
            run_collectives(*groups[g], key, delays) == expected[g][static_cast<std::size_t>(world.rank())]
                ? 1
                : 0;
      });
    }
    for (int i = 0; i < 20; ++i) EXPECT_EQ(world.sum(std::int64_t{i}), i * world.size());
  }
  return right;
}

class Split : public ::testing::TestWithParam<RunGroup> {
 protected:
  static void run(int ranks, const Body& body) { GetParam()(ranks, body); }
};

TEST_P(Split, CollectivesOfCrossedGroupsAreThoseOfSeparateWorlds) {
  const auto expected = seen_in_separate_worlds();
  std::atomic<int> right = 0;
  run(kRanks, [&](Communicator& world) { right += run_crossed_groups(world, expected); });
  EXPECT_EQ(right, kRanks * std::ssize(kCrossings));
}

TEST_P(Split, RanksKeepTheirOrderAndTheirNumbersInTheWorld) {
  run(7, [&](Communicator& world) {
    const auto thirds = world.split(world.rank() % 3, "thirds");
    EXPECT_EQ(thirds->size(), world.rank() % 3 == 0 ? 3 : 2);
    EXPECT_EQ(thirds->rank(), world.rank() / 3);
    for (int r = 0; r < thirds->size(); ++r) EXPECT_EQ(thirds->world_rank(r), 3 * r + world.rank() % 3);
    const auto pairs = thirds->split(thirds->rank() / 2, "pairs");  // of a group
    EXPECT_EQ(pairs->world_rank(pairs->rank()), world.rank());
    EXPECT_EQ(pairs->sum(std::int64_t{1}), pairs->size());
    if (world.rank() == 4) {
      EXPECT_EQ(pairs->group_text(), " of pairs group 0 (ranks 1, 4)");
    }
  });
}

// Rank 5 ends. The others meet in one group after the other until each of them knows.
TEST_P(Split, ALostRankOfOneGroupIsReportedInAll) {
  std::atomic<int> told = 0;
  const auto run_all = [&] {
    run(kRanks, [&](Communicator& world) {
      const Groups groups = groups_of(world);
      try {
        for (int i = 0;; ++i) {
          for (const auto& group : groups) {
            if (i == 3 && world.rank() == 5 && group == groups[1]) throw Error("rank 5 broke");
            group->barrier();
          }
        }
      } catch (const LostRank& error) {
        ++told;
        EXPECT_THAT(error.what(), HasSubstr(" group "));
        throw;
      }
    });
  };
  EXPECT_THROW(run_all(), Error);
  EXPECT_EQ(told, kRanks - 1);
}

TEST_P(Split, RanksThatAskForDifferentGroupsAreRefusedOnEveryRank) {
  std::atomic<int> refused = 0;
  run(3, [&](Communicator& world) {
    const bool is_wrong = world.rank() == 1;
    try {
      world.split(world.rank() / 2, is_wrong ? "replicas" : "tensor");
    } catch (const InternalError& error) {
      EXPECT_THAT(error.what(),
                  StartsWith("split: rank 1 asks for replicas group 0, rank 0 for tensor group 0"));
      ++refused;
    }
    try {
      world.split(is_wrong ? -1 : 0, "tensor");
    } catch (const InternalError& error) {
      EXPECT_THAT(error.what(),
                  StartsWith("split: rank 1 asks for tensor group -1, rank 0 for tensor group 0"));
      ++refused;
    }
    EXPECT_EQ(world.split(0, "tensor")->size(), 3);
  });
  EXPECT_EQ(refused, 6);
}

// As run_ranks: the first exception is rethrown.
void run_tcp_ranks_and_rethrow(int ranks, const Body& body) {
  FirstException failure;
  run_tcp_ranks(ranks, [&](Communicator& comm) { failure.run([&] { body(comm); }); });
  failure.rethrow();
}

INSTANTIATE_TEST_SUITE_P(Forms, Split,
                         ::testing::Values(RunGroup(run_ranks), RunGroup(run_tcp_ranks_and_rethrow)),
                         [](const auto& instance) { return instance.index == 0 ? "Threads" : "Tcp"; });

TEST(SplitMessages, NameTheGroupAndItsRanksInTheWorld) {
  std::string waited, ended;
  const auto body = [&](Communicator& world) {
    const auto pair = world.split(world.rank() / 2, "tensor"),
               other = world.split(world.rank() / 2, "replicas");
    if (world.rank() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    if (world.rank() != 2) return;
    try {
      pair->barrier();
    } catch (const LostRank& error) {
      waited = error.what();
    }
    other->set_patience({});
    try {
      other->barrier();
    } catch (const EndedRank& error) {
      ended = error.what();
    }
  };
  run_tcp_ranks(4, body, {.warn_seconds = 60, .give_up_seconds = 0.2});
  EXPECT_THAT(waited,
              StartsWith("rank 2 of tensor group 1 (ranks 2, 3) has waited 0 s for rank 3 in barrier 1"));
  EXPECT_EQ(ended, "rank 2 of replicas group 1 (ranks 2, 3): rank 3 has ended");
}

// What mpirun runs; a group that is wrong makes its rank fail.
TEST(SplitOverMpi, DISABLED_AsRank) {
  const auto world = message_group(mpi_transport().transport);
  const auto expected = seen_in_separate_worlds();
  EXPECT_EQ(run_crossed_groups(*world, expected), std::ssize(kCrossings));
}

TEST(SplitOverMpi, CollectivesOfCrossedGroupsAreThoseOfSeparateWorlds) {
  if (kSanitized) GTEST_SKIP() << "MPI's own leaks would be reported";
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  if (!std::filesystem::exists(program.parent_path() / "libhstu_mpi.so") ||
      std::system("mpirun --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "MPI is not installed";
  const std::string command = fmt::format(
      "mpirun --allow-run-as-root --oversubscribe -n {} {} --gtest_also_run_disabled_tests "
      "--gtest_filter=SplitOverMpi.DISABLED_AsRank >/dev/null",
      kRanks, program.string());
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace hstu::testing_split
