// The options of the synthetic events.
#pragma once

#include <cstdint>

#include "hstu/base/files.h"

namespace hstu {

struct GenerateOptions {
  std::int64_t users = 0;
  std::int64_t days = 0;
  std::int64_t items = 0;
  std::uint64_t seed = 1;
  Path output;
  int threads = 0;                   // 0: all cores; does not change the output
  double events_per_user_day = 16;   // mean over users; the public set has 15.9
  std::int64_t genres = 8;           // clusters of artists; a user likes two to four of them
  double items_per_artist = 10;      // mean
  double popularity_exponent = 1.2;  // Zipf exponent of artists within a genre
  double taste_days = 30;            // mean days until a user replaces a liked genre by another

  // Artists in the catalogue: at least one per genre.
  std::int64_t artists() const;
};

// Throws UsageError naming the option, its value and its range.
void check_options(const GenerateOptions& options);

}  // namespace hstu
