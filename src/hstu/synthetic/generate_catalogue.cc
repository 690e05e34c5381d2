#include "hstu/synthetic/generate_catalogue.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

namespace hstu {
namespace {

constexpr double kItemExponent = 1.0;
constexpr double kArtistSizeExponent = 0.5;  // popular artists have more items
constexpr double kMeanAlbumItems = 3;
constexpr double kExtraListings = 0.03;
constexpr double kArtistQuality = 0.35, kAlbumQuality = 0.15, kItemQuality = 0.20;  // standard deviations

// 1 ... count in random order (Fisher-Yates).
std::vector<std::uint32_t> shuffled_ids(std::int64_t count, RandomStream random) {
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 1u);
  for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[random.below(i)]);
  return ids;
}

}  // namespace

std::int64_t zipf_rank(std::int64_t count, double exponent, double uniform) {
  const double n = static_cast<double>(count) + 1;
  double x;
  if (std::abs(exponent - 1) < 1e-9) {
    x = std::exp(uniform * std::log(n));
  } else {
    const double power = 1 - exponent;
    x = std::pow(1 + uniform * (std::pow(n, power) - 1), 1 / power);
  }
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(x) - 1, 0, count - 1);
}

Catalogue::Catalogue(const GenerateOptions& options)
    : genres_(options.genres), exponent_(options.popularity_exponent) {
  make_artists(options);
  make_items(options);
}

std::int64_t Catalogue::first_artist(std::int64_t genre) const {
  return genre * static_cast<std::int64_t>(artists_.size() - 1) / genres_;
}

std::uint32_t Catalogue::draw_artist(std::int64_t genre, RandomStream& random) const {
  const std::int64_t first = first_artist(genre), count = first_artist(genre + 1) - first;
  return static_cast<std::uint32_t>(first + zipf_rank(count, exponent_, random.uniform()));
}

std::uint32_t Catalogue::draw_item(std::uint32_t artist, RandomStream& random) const {
  const std::uint32_t first = artists_[artist].first_item;
  const std::int64_t rank =
      zipf_rank(artists_[artist + 1].first_item - first, kItemExponent, random.uniform());
  return first + static_cast<std::uint32_t>(rank);
}

void Catalogue::make_artists(const GenerateOptions& options) {
  const std::int64_t count = options.artists();
  const auto ids = shuffled_ids(count, {derive_key(options.seed, "artist ids")});
  RandomStream random{derive_key(options.seed, "artists")};
  artists_.resize(static_cast<std::size_t>(count) + 1);
  std::vector<double> size(static_cast<std::size_t>(count));
  for (std::int64_t genre = 0; genre < genres_; ++genre) {
    for (std::int64_t i = first_artist(genre); i < first_artist(genre + 1); ++i) {
      CatalogueArtist& artist = artists_[static_cast<std::size_t>(i)];
      artist.id = ids[static_cast<std::size_t>(i)];
      artist.genre = static_cast<std::uint16_t>(genre);
      artist.peak_hour = static_cast<std::uint16_t>(random.below(24));
      artist.quality = static_cast<float>(kArtistQuality * random.normal());
      for (float& s : artist.style) s = static_cast<float>(random.normal());
      size[static_cast<std::size_t>(i)] =
          std::pow(static_cast<double>(i - first_artist(genre) + 1), -kArtistSizeExponent);
    }
  }
  // One item for every artist, the others in proportion to `size`.
  const double total = std::accumulate(size.begin(), size.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < size.size(); ++i) {
    const double share = std::floor(static_cast<double>(options.items - count) * (sum / total));
    artists_[i].first_item = static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(share);
    sum += size[i];
  }
  artists_.back().first_item = static_cast<std::uint32_t>(options.items);
}

void Catalogue::make_items(const GenerateOptions& options) {
  const auto ids = shuffled_ids(options.items, {derive_key(options.seed, "item ids")});
  RandomStream random{derive_key(options.seed, "items")};
  items_.resize(ids.size());
  for (const auto& artist : artists()) {
    const std::uint32_t end = (&artist + 1)->first_item;
    float album_quality = 0;
    for (std::uint32_t i = artist.first_item; i < end; ++i) {
      if (i == artist.first_item || random.uniform() < 1 / kMeanAlbumItems) {
        ++albums_;
        album_quality = static_cast<float>(kAlbumQuality * random.normal());
      }
      CatalogueItem& item = items_[i];
      item.id = ids[i];
      item.album_id = static_cast<std::uint32_t>(albums_);
      item.quality = album_quality + static_cast<float>(kItemQuality * random.normal());
      item.length =
          static_cast<std::uint16_t>(std::clamp(std::exp(5.3 + 0.3 * random.normal()), 60.0, 900.0));
    }
  }
  const auto album_ids = shuffled_ids(albums_, {derive_key(options.seed, "album ids")});
  for (CatalogueItem& item : items_) item.album_id = album_ids[item.album_id - 1];
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    if (random.uniform() < kExtraListings) {
      featured_artists_.push_back({i, artists_[random.below(artists_.size() - 1)].id});
    }
    if (random.uniform() < kExtraListings) {
      compilations_.push_back({i, album_ids[random.below(album_ids.size())]});
    }
  }
}

}  // namespace hstu
