// The planted signal: the probability that a listen becomes a listen_plus (played for at least half).
//
//   logit p = intercept + user's bias + artist's and item's quality           known to running means
//           + taste(user, genre, now) + 0.1 (user's style . artist's style)   preferences; taste changes
//           + 0.6 tanh(0.6 affinity)      affinity: sum over the last 128 listens of the same artist of
//                                         value 2^(-age / 48), age in listens; value: listen_plus +1, skip
//                                         -1, a like adds 2, a dislike subtracts 2
//           + 0.2 cos(hour - user's peak hour) + 0.2 cos(hour - artist's peak hour)
//           - 0.7 sum over the last 128 listens of the same item   exp(-seconds / 6 h)
//           - 0.1 sum over the last 128 listens of the same artist exp(-seconds / 1 h)
//
// All terms, but not the final random draw, can be inferred from (item, artist, album, action, time) of a
// user's recent events.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hstu/base/random.h"
#include "hstu/synthetic/generate_catalogue.h"

namespace hstu {

inline constexpr std::int64_t kSecondsPerDay = 86'400;

// The recent listens of a user.
class RecentListens {
 public:
  static constexpr int kCapacity = 128;

  struct Sums {
    double affinity = 0, item_fatigue = 0, artist_fatigue = 0;
  };
  // Sums over the kept listens as in the formula above, `time` in seconds.
  Sums sums(std::uint32_t artist, std::uint32_t item, std::uint32_t time) const;

  void add(std::uint32_t artist, std::uint32_t item, std::uint32_t time, float value);
  void add_to_last(float value) { value_[(count_ - 1) % kCapacity] += value; }
  bool empty() const { return count_ == 0; }
  // The artist of a uniformly drawn kept listen; artists of skipped listens are drawn again up to twice.
  std::uint32_t draw_artist(RandomStream& random) const;
  // Whether there is a listen of `item` at exactly `time`.
  bool contains(std::uint32_t item, std::uint32_t time) const;

 private:
  std::uint64_t kept() const { return count_ < kCapacity ? count_ : kCapacity; }

  std::array<std::uint32_t, kCapacity> artist_{}, item_{}, time_{};
  std::array<float, kCapacity> value_{};
  std::uint64_t count_ = 0;
};

// A user's constant properties, and the taste, which changes with time.
class Listener {
 public:
  Listener(const GenerateOptions& options, RandomStream& random);

  // Advances the taste to `time` (seconds, must not decrease from call to call).
  void live_until(std::uint32_t time, RandomStream& random);
  std::int64_t draw_liked_genre(RandomStream& random) const;
  // The formula above. `time` in seconds.
  double probability(const CatalogueArtist& artist, const CatalogueItem& item, std::uint32_t time,
                     const RecentListens::Sums& recent) const;
  int hour_shift() const { return hour_shift_; }

 private:
  double seconds_to_swap(RandomStream& random) const;

  double taste_seconds_;
  double bias_;
  Style style_;
  std::uint16_t peak_hour_;
  int hour_shift_;                   // hours by which this user's day is shifted
  std::vector<float> taste_;         // logit, one per genre
  std::vector<std::int64_t> liked_;  // two to four genres
  double next_swap_;                 // seconds
};

}  // namespace hstu
