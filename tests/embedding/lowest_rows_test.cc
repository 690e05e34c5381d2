#include "hstu/embedding/lowest_rows.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "embedding/support.h"
#include "sanitizers.h"

namespace hstu {
namespace {

using namespace testing_embedding;

// Rows with few different scores, which rise, leave and come back, in a table of many times the rows that a
// scan keeps: what is taken equals a sort of all rows.
TEST(LowestRows, AreThoseOfASortOfAllRows) {
  constexpr std::int64_t kRows = 60'000;
  constexpr std::uint32_t kSteps = kSanitized ? 6 : 30;
  for (const std::int64_t scores : {1, 3, 1'000'000}) {
    for (const int n : {1, 3}) {
      const Threads threads(n);
      RowDirectory store(10 * kRows);
      std::vector<std::int64_t> slots(kRows);
      RandomStream random{.key = static_cast<std::uint64_t>(scores)};
      const auto draw = [&](std::int64_t bound) {
        return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
      };
      store.create_slots(range(0, kRows), slots.data());
      std::map<std::int64_t, std::int64_t> all;  // score by id
      LowestRows lowest(store, false);
      const auto set = [&](std::int64_t slot, std::int64_t score, std::uint32_t seen) {
        store.row(slot).score = score;
        store.row(slot).seen = seen;
        all[store.row(slot).id] = score;
      };
      for (const std::int64_t slot : slots) set(slot, draw(scores), 1);
      for (std::uint32_t step = 2; step < kSteps; ++step) {
        Ids seen;
        for (int i = 0; i < 3000; ++i) {  // scores rise
          const auto row = all.lower_bound(draw(10 * kRows));
          if (row == all.end()) continue;
          std::int64_t slot = 0;
          store.find_slots(std::span(&row->first, 1), &slot);
          set(slot, row->second + draw(2) * draw(scores + 1), step);
          seen.push_back(row->first);
        }
        for (int i = 0; i < 500; ++i) {  // rows come, some of them again
          const std::int64_t id = draw(10 * kRows);
          if (all.contains(id)) continue;
          std::int64_t slot = 0;
          store.create_slots(std::span(&id, 1), &slot);
          set(slot, draw(scores), step);
          lowest.add(slot);
          seen.push_back(id);
        }
        std::sort(seen.begin(), seen.end());
        std::vector<RowOrder> expected;
        for (const auto& [id, score] : all)
          if (!std::binary_search(seen.begin(), seen.end(), id)) expected.push_back({score, id});
        std::sort(expected.begin(), expected.end());
        const std::int64_t count = step == 2 * kSteps / 3 ? 5000 : 700;
        auto taken = lowest.take(count, step);
        std::sort(taken.begin(), taken.end(), LowestRows::leaves_before);
        ASSERT_EQ(static_cast<std::int64_t>(taken.size()), count);
        for (std::size_t i = 0; i < taken.size(); ++i) {
          ASSERT_EQ(taken[i].order, expected[i]) << "score " << expected[i].score << " id " << expected[i].id;
          ASSERT_EQ(store.row(taken[i].slot).id, expected[i].id);
        }
        const std::size_t leaving = taken.size() / 2;
        for (std::size_t i = 0; i < leaving; ++i) {
          all.erase(taken[i].order.id);
          store.remove(std::vector<RowPlace>{{taken[i].order.id, taken[i].slot}});
        }
        lowest.put_back(std::span(taken).subspan(leaving));
      }
    }
  }
}

TEST(LowestRows, OfABusyStepComeLast) {
  RowDirectory store(10);
  std::vector<std::int64_t> slots(4);
  store.create_slots(Ids{1, 2, 3, 4}, slots.data());
  for (const std::int64_t slot : slots) store.row(slot).seen = store.row(slot).id <= 2 ? 9 : 8;
  LowestRows lowest(store, false);
  auto taken = lowest.take(3, 9);
  std::sort(taken.begin(), taken.end(), LowestRows::leaves_before);
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[0].order.id, 3);
  EXPECT_EQ(taken[1].order.id, 4);
  EXPECT_EQ(taken[2].order.id, 1);
  EXPECT_TRUE(taken[2].busy);
  EXPECT_FALSE(taken[1].busy);
}

}  // namespace
}  // namespace hstu
