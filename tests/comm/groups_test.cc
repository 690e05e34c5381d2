#include "hstu/comm/groups.h"

#include <vector>

#include <gtest/gtest.h>

#include "hstu/comm/thread_group.h"

namespace hstu {
namespace {

std::vector<int> ranks_of(const Group& group) {
  std::vector<int> ranks;
  for (int r = 0; r < group.size(); ++r) ranks.push_back(group.host.world_rank(r));
  return ranks;
}

TEST(DividedRanks, TensorGroupsAreConsecutiveRanksAndReplicasThoseAtTheSamePlaceInThem) {
  run_ranks(8, [](Communicator& world) {
    const auto gpus = staged_transport(world);
    ExchangeQueue queue(world, gpus.get());
    const DividedRanks ranks({world, gpus.get(), &queue}, {.tensor = 2, .context = 2});
    const Groups& groups = ranks.groups();
    const int r = world.rank();
    EXPECT_EQ(&groups.world.host, &world);
    EXPECT_EQ(ranks_of(groups.tensor), (std::vector<int>{r / 2 * 2, r / 2 * 2 + 1}));
    const int first = r / 4 * 4 + r % 2;
    EXPECT_EQ(ranks_of(groups.context), (std::vector<int>{first, first + 2}));
    EXPECT_EQ(ranks_of(groups.replicas), (std::vector<int>{r % 2, r % 2 + 2, r % 2 + 4, r % 2 + 6}));
    EXPECT_EQ(groups.replicas.rank(), r / 2);
    EXPECT_EQ(groups.tensor.device->size(), 2);
    EXPECT_EQ(groups.tensor.device->rank(), r % 2);
    EXPECT_NE(groups.tensor.queue, groups.replicas.queue);
  });
}

TEST(DividedRanks, SizesThatDoNotDivideTheRanksAreRefused) {
  run_ranks(6, [](Communicator& world) {
    EXPECT_THROW(DividedRanks({world}, {.tensor = 4}), UsageError);
    EXPECT_THROW(DividedRanks({world}, {.tensor = 0}), UsageError);
    EXPECT_THROW(DividedRanks({world}, {.tensor = 3, .context = 4}), UsageError);
    const DividedRanks ranks({world}, {.tensor = 3});
    EXPECT_EQ(ranks.groups().replicas.size(), 2);
    EXPECT_EQ(ranks.groups().tensor.device, nullptr);
    EXPECT_EQ(ranks.groups().tensor.queue, nullptr);
  });
}

}  // namespace
}  // namespace hstu
