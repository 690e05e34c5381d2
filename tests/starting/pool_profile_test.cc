#include "hstu/starting/pool_profile.h"

#include <gtest/gtest.h>

#include "temporary_folder.h"
#include "write_dataset.h"

namespace hstu {
namespace {

// Users 1 and 2 have 4 and 2 events, all of which can be ranked; actions: view 1, buy 2.
Dataset small(const Path& folder) {
  Manifest description;
  description.name = "small";
  description.actions = {{"view", 1}, {"buy", 2}};
  description.label = "buy";
  description.pools = {"view", "buy"};
  EventTable table;
  table.user.append(std::vector<std::int64_t>{1, 1, 1, 1, 2, 2});
  table.time.append(std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  table.item.append(std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  for (const std::uint8_t bits : {1, 1, 3, 2, 1, 1}) table.action.push_back(bits | kRankableBit);
  write_dataset(folder, description, table);
  return Dataset(folder);
}

TEST(PoolProfile, CountsEarlierEventsOfEveryPoolAndTheRoomThatTheyFill) {
  const Dataset dataset = small(temporary_folder());
  const auto pools = profile_pools(dataset, {{"view"}, {"buy"}, {"view", "buy"}}, 2);
  ASSERT_EQ(pools.size(), 3u);
  EXPECT_EQ(pools[0].pool, "view");
  EXPECT_EQ(pools[0].events, 5);
  EXPECT_DOUBLE_EQ(pools[0].users, 1);
  EXPECT_DOUBLE_EQ(pools[0].earlier, (0 + 1 + 2 + 3 + 0 + 1) / 6.0);
  EXPECT_DOUBLE_EQ(pools[0].full, (0 + 0.5 + 1 + 1 + 0 + 0.5) / 6);
  EXPECT_EQ(pools[1].events, 2);
  EXPECT_DOUBLE_EQ(pools[1].users, 0.5);
  EXPECT_DOUBLE_EQ(pools[1].earlier, 1 / 6.0);
  EXPECT_EQ(pools[2].pool, "view or buy");
  EXPECT_EQ(pools[2].events, 6);
}

TEST(PoolProfile, KnowsTheEventsOfUsers) {
  const UserProfile users = profile_users(small(temporary_folder()));
  EXPECT_EQ(users.median, 4);
  EXPECT_EQ(users.most, 4);
}

}  // namespace
}  // namespace hstu
