#include "hstu/base/ordered_map.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "hstu/base/json.h"

namespace hstu {
namespace {

// Counts how often keys are compared.
struct CountedKey {
  int value = 0;
  static inline std::int64_t compared = 0;
  friend bool operator==(const CountedKey& a, const CountedKey& b) { return ++compared, a.value == b.value; }
  friend bool operator<(const CountedKey& a, const CountedKey& b) { return ++compared, a.value < b.value; }
};
using CountedMap = OrderedMap<CountedKey, int, std::less<>, std::allocator<std::pair<const CountedKey, int>>>;

TEST(OrderedMap, AKeyOfManyIsNotComparedWithAllOthers) {
  constexpr int kKeys = 10000;
  CountedMap map;
  for (int i = 0; i < kKeys; ++i) map[CountedKey{i}] = 2 * i;
  const CountedMap& constant = map;
  for (int i = 0; i < kKeys; ++i) EXPECT_EQ(constant.find(CountedKey{i})->second, 2 * i);
  EXPECT_LT(CountedKey::compared, 100 * kKeys);  // of 10^8 without an index
}

// Objects with few and with many members, for which an index is made, are the same to their users.
TEST(OrderedMap, MembersKeepTheirOrder) {
  for (const int keys : {3, 32, 33, 200}) {
    std::string text = "{";
    for (int i = keys; i-- > 0;) text += "\"k" + std::to_string(i) + "\":" + std::to_string(i) + ",";
    Json json = Json::parse(text + R"("k1":"the last"})");
    ASSERT_EQ(json.size(), static_cast<std::size_t>(keys));
    EXPECT_EQ(json.begin().key(), "k" + std::to_string(keys - 1));
    EXPECT_EQ(std::prev(json.end()).key(), "k0");
    EXPECT_EQ(json.at("k1"), "the last");
    EXPECT_FALSE(json.contains("absent"));
    const Json copy = json;
    EXPECT_EQ(json.erase("k1"), 1u);
    EXPECT_EQ(json.erase("k1"), 0u);
    json["added"] = 7;
    EXPECT_EQ(json.at("k0"), 0);
    EXPECT_EQ(json.at("added"), 7);
    EXPECT_FALSE(json.contains("k1"));
    EXPECT_EQ(std::prev(json.end()).key(), "added");
    EXPECT_EQ(copy.at("k1"), "the last");
    Json moved = std::move(json);
    moved.update(copy);
    EXPECT_EQ(moved.size(), static_cast<std::size_t>(keys + 1));
    EXPECT_EQ(std::prev(moved.end()).key(), "k1");
    EXPECT_EQ(moved.at("k1"), "the last");
    moved.clear();
    moved["k0"] = 1;
    EXPECT_EQ(moved.dump(), R"({"k0":1})");
  }
}

}  // namespace
}  // namespace hstu
