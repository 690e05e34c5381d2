#include "hstu/synthetic/generate_signal.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>

#include "hstu/synthetic/generate_user.h"
#include "synthetic/generated_events.h"

namespace hstu {
namespace {

TEST(ZipfRank, FallsLikeOneOverRank) {
  RandomStream random{5};
  std::array<double, 100> counts{};
  for (int i = 0; i < 200'000; ++i)
    ++counts.at(static_cast<std::size_t>(zipf_rank(100, 1.0, random.uniform())));
  // P(rank = k) = log((k + 2) / (k + 1)) / log(101)
  for (const int k : {0, 1, 4, 20, 99}) {
    const double expected = 200'000 * std::log((k + 2.0) / (k + 1.0)) / std::log(101.0);
    EXPECT_NEAR(counts[static_cast<std::size_t>(k)], expected, 5 * std::sqrt(expected)) << k;
  }
}

TEST(ZipfRank, StaysInRangeAndIsUniformForExponentZero) {
  for (const double exponent : {0.0, 0.5, 1.0, 3.0}) {
    EXPECT_EQ(zipf_rank(7, exponent, 0.0), 0);
    EXPECT_EQ(zipf_rank(7, exponent, 1 - 0x1p-53), 6);
    EXPECT_EQ(zipf_rank(1, exponent, 0.9), 0);
  }
  EXPECT_EQ(zipf_rank(10, 0.0, 0.55), 5);
}

TEST(RecentListens, SumsWhatTheFormulaSays) {
  RecentListens recent;
  recent.add(3, 30, 1000, 1);
  recent.add(4, 40, 2000, 1);
  recent.add(3, 31, 3000, -1);
  recent.add_to_last(2);
  const auto sums = recent.sums(3, 30, 4600);
  EXPECT_NEAR(sums.affinity, std::exp2(-2.0 / 48) + 1, 1e-12);
  EXPECT_NEAR(sums.item_fatigue, std::exp(-3600.0 / 21'600), 1e-12);
  EXPECT_NEAR(sums.artist_fatigue, std::exp(-1.0) + std::exp(-1600.0 / 3600), 1e-12);
  EXPECT_EQ(recent.sums(5, 50, 4600).affinity, 0);
}

TEST(RecentListens, ForgetsAllButTheLast128) {
  RecentListens recent;
  recent.add(1, 10, 5, 1);
  for (std::uint32_t i = 0; i < 127; ++i) recent.add(2, 20, 10 + i, 1);
  EXPECT_GT(recent.sums(1, 10, 500).affinity, 0);
  EXPECT_TRUE(recent.contains(10, 5));
  recent.add(2, 20, 300, 1);
  EXPECT_EQ(recent.sums(1, 10, 500).affinity, 0);
  EXPECT_FALSE(recent.contains(10, 5));
}

class ListenerTest : public testing::Test {
 protected:
  GenerateOptions options = small_options({});
  RandomStream random{11};
  CatalogueItem item{1, 1, 0, 200};
  CatalogueArtist artist_of(std::uint16_t genre) { return {1, 0, genre, 0, 0, {}}; }
  double probability(const Listener& listener, std::uint16_t genre, const RecentListens::Sums& sums = {}) {
    return listener.probability(artist_of(genre), item, 0, sums);
  }
  std::set<int> liked(const Listener& listener) {
    std::set<int> result;
    for (int i = 0; i < 200; ++i) result.insert(static_cast<int>(listener.draw_liked_genre(random)));
    return result;
  }
};

TEST_F(ListenerTest, LikesTwoToFourGenresBest) {
  for (int user = 0; user < 20; ++user) {
    const Listener listener(options, random);
    const auto genres = liked(listener);
    EXPECT_GE(genres.size(), 2u);
    EXPECT_LE(genres.size(), 4u);
    double worst_liked = 1, best_other = 0;
    for (std::uint16_t genre = 0; genre < options.genres; ++genre) {
      const double p = probability(listener, genre);
      if (genres.contains(genre)) {
        worst_liked = std::min(worst_liked, p);
      } else {
        best_other = std::max(best_other, p);
      }
    }
    EXPECT_GT(worst_liked, best_other - 0.1);  // both spread a little
  }
}

TEST_F(ListenerTest, WarmsToArtistsAndTiresOfRepetition) {
  const Listener listener(options, random);
  const double neutral = probability(listener, 0);
  EXPECT_GT(probability(listener, 0, {2, 0, 0}), neutral);
  EXPECT_LT(probability(listener, 0, {-2, 0, 0}), neutral);
  EXPECT_LT(probability(listener, 0, {0, 1, 0}), neutral);
  EXPECT_LT(probability(listener, 0, {0, 0, 3}), neutral);
}

TEST_F(ListenerTest, TasteMovesOnWithTime) {
  options.taste_days = 1;
  Listener listener(options, random);
  const auto before = liked(listener);
  listener.live_until(static_cast<std::uint32_t>(30 * kSecondsPerDay), random);
  const auto after = liked(listener);
  EXPECT_EQ(after.size(), before.size());
  EXPECT_NE(after, before);
}

TEST(GenerateUser, IsAFunctionOfSeedAndUser) {
  const GenerateOptions options = small_options({});
  const Catalogue catalogue(options);
  std::vector<GeneratedEvent> first, other, again;
  generate_user(options, catalogue, 17, first);
  generate_user(options, catalogue, 18, other);
  generate_user(options, catalogue, 17, again);
  const auto times = [](const std::vector<GeneratedEvent>& events) {
    std::vector<std::uint32_t> result;
    for (const GeneratedEvent& event : events) result.push_back(event.timestamp);
    return result;
  };
  EXPECT_EQ(times(first), times(again));
  EXPECT_NE(times(first), times(other));
}

}  // namespace
}  // namespace hstu
