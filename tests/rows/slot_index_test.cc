#include "hstu/rows/slot_index.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "hstu/base/random.h"

namespace hstu {
namespace {

// Ids that come and go, with tags that collide or are next to the end of the array, where places wrap.
TEST(SlotIndex, AgreesWithAMapOverInsertionsAndRemovals) {
  using Tag = std::uint32_t (*)(std::int64_t);
  for (const Tag tag_of :
       {Tag([](std::int64_t id) { return mix32(static_cast<std::uint32_t>(id)); }),
        Tag([](std::int64_t id) { return static_cast<std::uint32_t>(id % 7) << 29; }),
        Tag([](std::int64_t id) { return ~std::uint32_t{0} - static_cast<std::uint32_t>(id % 3); }),
        Tag([](std::int64_t) { return std::uint32_t{0}; })}) {
    SlotIndex index;
    std::map<std::int64_t, std::int64_t> slots;  // by id
    std::map<std::int64_t, std::int64_t> ids;    // by slot
    std::int64_t most = 0;
    RandomStream random{.key = 7};
    const auto find = [&](std::int64_t id) {
      return index.find(tag_of(id), [&](std::uint32_t slot) { return ids.at(slot) == id; });
    };
    EXPECT_EQ(find(0), SlotIndex::kAbsent);
    for (int step = 0; step < 6000; ++step) {
      const auto id = static_cast<std::int64_t>(random.below(400));
      if (!slots.contains(id)) {
        std::int64_t slot = 0;
        while (ids.contains(slot)) ++slot;
        index.insert(tag_of(id), slot);
        slots[id] = slot;
        ids[slot] = id;
      } else if (random.below(step < 3000 ? 3 : 2) == 0) {
        index.erase(tag_of(id), slots.at(id));
        ids.erase(slots.at(id));
        slots.erase(id);
      }
      most = std::max(most, std::ssize(slots));
      if (step % 50 != 0) continue;
      for (std::int64_t i = 0; i < 400; ++i)
        ASSERT_EQ(find(i), slots.contains(i) ? slots.at(i) : SlotIndex::kAbsent) << "id " << i;
      ASSERT_LE(index.bytes(), SlotIndex::most_bytes(most));
    }
    EXPECT_GT(most, 200);
  }
}

TEST(SlotIndex, FindsALikelySlotByItsTagAlone) {
  SlotIndex index;
  EXPECT_EQ(index.likely(5), SlotIndex::kAbsent);
  index.insert(5, 2);
  index.insert(5, 9);
  index.insert(1'000'000'000, 4);
  EXPECT_EQ(index.likely(5), 2);
  EXPECT_EQ(index.likely(1'000'000'000), 4);
  EXPECT_EQ(index.likely(6), SlotIndex::kAbsent);
  index.erase(5, 2);
  EXPECT_EQ(index.likely(5), 9);
}

TEST(SlotIndex, RefusesSlotsBeyond32BitsAndRemovingWhatIsNotThere) {
  SlotIndex index;
  constexpr std::int64_t kEmpty = (std::int64_t{1} << 32) - 1;
  EXPECT_THROW(index.insert(1, kEmpty), InternalError);
  EXPECT_THROW(index.insert(1, -1), InternalError);
  index.insert(1, kEmpty - 1);
  EXPECT_THROW(index.erase(1, 3), InternalError);
  EXPECT_EQ(index.find(1, [](std::uint32_t) { return true; }), kEmpty - 1);
}

}  // namespace
}  // namespace hstu
