// The synthetic catalogue: genres consist of artists, artists of albums, albums of items.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hstu/base/random.h"
#include "hstu/synthetic/generate_options.h"

namespace hstu {

inline constexpr int kStyleSize = 4;  // dimensions of style, the finer taste within a genre
using Style = std::array<float, kStyleSize>;

struct CatalogueArtist {
  std::uint32_t id;          // as written: 1 ... artists, in random order
  std::uint32_t first_item;  // items [first_item, first_item of the next artist), most popular first
  std::uint16_t genre;
  std::uint16_t peak_hour;  // hour of day at which the artist is most popular
  float quality;            // logit
  Style style;              // standard normal
};

struct CatalogueItem {
  std::uint32_t id;        // as written: 1 ... items, in random order
  std::uint32_t album_id;  // 1 ... albums
  float quality;           // logit, album's share included
  std::uint16_t length;    // seconds
};

// An additional listing of an item: a featured artist, or a compilation album.
struct ExtraListing {
  std::uint32_t item;  // index into items()
  std::uint32_t id;    // artist or album id
};

// The artists of a genre and the items of an artist are consecutive and ordered by popularity: a Zipf-like
// rank within the range draws one of them.
class Catalogue {
 public:
  explicit Catalogue(const GenerateOptions& options);

  std::span<const CatalogueArtist> artists() const { return {artists_.data(), artists_.size() - 1}; }
  std::span<const CatalogueItem> items() const { return items_; }
  std::int64_t genres() const { return genres_; }

  // About 3 % of the items list a second artist or album; ascending by item.
  const std::vector<ExtraListing>& featured_artists() const { return featured_artists_; }
  const std::vector<ExtraListing>& compilations() const { return compilations_; }

  // The artist of rank ~ Zipf(popularity exponent) within the genre.
  std::uint32_t draw_artist(std::int64_t genre, RandomStream& random) const;
  // The item of rank ~ Zipf(1) among the artist's.
  std::uint32_t draw_item(std::uint32_t artist, RandomStream& random) const;

 private:
  std::int64_t first_artist(std::int64_t genre) const;
  void make_artists(const GenerateOptions& options);
  void make_items(const GenerateOptions& options);

  std::int64_t genres_, albums_ = 0;
  double exponent_;
  std::vector<CatalogueArtist>
      artists_;  // and an extra element, whose first_item ends the last artist's items
  std::vector<CatalogueItem> items_;
  std::vector<ExtraListing> featured_artists_, compilations_;
};

// A rank in [0, count): P(rank) falls like (rank + 1)^-exponent. The floor of a bounded Pareto variable, so
// it needs no table. `uniform` in [0, 1).
std::int64_t zipf_rank(std::int64_t count, double exponent, double uniform);

}  // namespace hstu
