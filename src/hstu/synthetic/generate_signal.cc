#include "hstu/synthetic/generate_signal.h"

#include <cmath>
#include <cstddef>
#include <numbers>

#include "hstu/base/contains.h"

namespace hstu {
namespace {

constexpr double kIntercept = 0.35;
constexpr double kUserBias = 0.58;                         // standard deviation
constexpr double kLikedMean = 1.25, kLikedSpread = 0.2;    // taste for a liked genre
constexpr double kOtherMean = -1.05, kOtherSpread = 0.25;  // taste for any other
constexpr double kStyleWeight = 0.2 / 2;  // 2 = sqrt(kStyleSize): unit variance of the product
constexpr double kAffinityWeight = 0.6, kAffinitySlope = 0.6, kAffinityHalfLife = 48;
constexpr double kUserHour = 0.2, kArtistHour = 0.2;
constexpr double kItemFatigue = 0.7, kItemFatigueSeconds = 6 * 3600;
constexpr double kArtistFatigue = 0.1, kArtistFatigueSeconds = 3600;

struct Tables {
  std::array<double, RecentListens::kCapacity> decay{};  // by age in listens
  std::array<double, 24> cosine{};                       // by difference in hours
  Tables() {
    for (std::size_t i = 0; i < decay.size(); ++i) {
      decay[i] = std::exp2(-static_cast<double>(i) / kAffinityHalfLife);
    }
    for (std::size_t h = 0; h < cosine.size(); ++h) {
      cosine[h] = std::cos(2 * std::numbers::pi * static_cast<double>(h) / 24);
    }
  }
};
const Tables& tables() {
  static const Tables instance;
  return instance;
}

float draw_taste(bool liked, RandomStream& random) {
  const double mean = liked ? kLikedMean : kOtherMean, spread = liked ? kLikedSpread : kOtherSpread;
  return static_cast<float>(mean + spread * random.normal());
}

}  // namespace

RecentListens::Sums RecentListens::sums(std::uint32_t artist, std::uint32_t item, std::uint32_t time) const {
  Sums result;
  const std::uint64_t n = kept();
  for (std::uint64_t i = 0; i < n; ++i) {
    if (artist_[i] != artist) continue;
    const std::uint64_t age = (count_ - 1 - i) % kCapacity;
    const double seconds = static_cast<double>(time - time_[i]);
    result.affinity += static_cast<double>(value_[i]) * tables().decay[age];
    result.artist_fatigue += std::exp(-seconds / kArtistFatigueSeconds);
    if (item_[i] == item) result.item_fatigue += std::exp(-seconds / kItemFatigueSeconds);
  }
  return result;
}

void RecentListens::add(std::uint32_t artist, std::uint32_t item, std::uint32_t time, float value) {
  const std::uint64_t i = count_++ % kCapacity;
  artist_[i] = artist;
  item_[i] = item;
  time_[i] = time;
  value_[i] = value;
}

std::uint32_t RecentListens::draw_artist(RandomStream& random) const {
  std::uint64_t i = random.below(kept());
  for (int again = 0; again < 2 && value_[i] < 0; ++again) i = random.below(kept());
  return artist_[i];
}

bool RecentListens::contains(std::uint32_t item, std::uint32_t time) const {
  for (std::uint64_t age = 0; age < kept(); ++age) {
    const std::uint64_t i = (count_ - 1 - age) % kCapacity;
    if (time_[i] < time) return false;
    if (time_[i] == time && item_[i] == item) return true;
  }
  return false;
}

Listener::Listener(const GenerateOptions& options, RandomStream& random)
    : taste_seconds_(options.taste_days * static_cast<double>(kSecondsPerDay)),
      bias_(kUserBias * random.normal()),
      peak_hour_(static_cast<std::uint16_t>(random.below(24))),
      hour_shift_(static_cast<int>(random.below(5)) - 2),
      taste_(static_cast<std::size_t>(options.genres)) {
  for (float& s : style_) s = static_cast<float>(random.normal());
  const std::size_t liked = 2 + random.below(3);
  while (liked_.size() < liked) {
    const auto genre = static_cast<std::int64_t>(random.below(taste_.size()));
    if (!contains(liked_, genre)) liked_.push_back(genre);
  }
  for (float& t : taste_) t = draw_taste(false, random);
  for (const std::int64_t genre : liked_) taste_[static_cast<std::size_t>(genre)] = draw_taste(true, random);
  next_swap_ = seconds_to_swap(random);
}

double Listener::seconds_to_swap(RandomStream& random) const {
  return -taste_seconds_ * std::log(1 - random.uniform());
}

void Listener::live_until(std::uint32_t time, RandomStream& random) {
  while (next_swap_ <= time) {
    std::int64_t& liked = liked_[random.below(liked_.size())];
    const auto fresh = static_cast<std::int64_t>(random.below(taste_.size()));
    if (!contains(liked_, fresh)) {
      taste_[static_cast<std::size_t>(liked)] = draw_taste(false, random);
      taste_[static_cast<std::size_t>(fresh)] = draw_taste(true, random);
      liked = fresh;
    }
    next_swap_ += seconds_to_swap(random);
  }
}

std::int64_t Listener::draw_liked_genre(RandomStream& random) const {
  return liked_[random.below(liked_.size())];
}

double Listener::probability(const CatalogueArtist& artist, const CatalogueItem& item, std::uint32_t time,
                             const RecentListens::Sums& recent) const {
  double style = 0;
  for (std::size_t i = 0; i < style_.size(); ++i) style += style_[i] * artist.style[i];
  const unsigned hour = time / 3600 % 24;
  const double logit = kIntercept + bias_ + artist.quality + item.quality + taste_[artist.genre] +
                       kStyleWeight * style + kAffinityWeight * std::tanh(kAffinitySlope * recent.affinity) +
                       kUserHour * tables().cosine[(hour + 24 - peak_hour_) % 24] +
                       kArtistHour * tables().cosine[(hour + 24 - artist.peak_hour) % 24] -
                       kItemFatigue * recent.item_fatigue - kArtistFatigue * recent.artist_fatigue;
  return 1 / (1 + std::exp(-logit));
}

}  // namespace hstu
