// Random sequences for measuring speed: NVIDIA's synthetic ranking data, as a log for hstu prepare parquet.
// There is nothing to learn in them.
#pragma once

#include <cstdint>

#include "hstu/base/files.h"
#include "hstu/synthetic/random_distribution.h"

namespace hstu {

struct RandomOptions {
  std::int64_t users = 0;  // sequences
  Distribution lengths{.kind = DistributionKind::zipf, .low = 1, .high = 4096, .alpha = 1.2};
  Distribution items{.high = 50'000'000};  // ids below `high`: zipf is drawn as bounded_zipf
  std::int64_t actions = 100;              // action ids are uniform in [0, actions)
  std::int64_t tasks = 8;                  // labels are uniform in [0, 2^tasks)
  std::int64_t ages = 100;                 // user_age is uniform in [0, ages), one for each user
  std::int64_t categories = 50;            // item_category_l1 likewise
  std::uint64_t seed = 1234;
  Path output;
};

struct RandomCounts {
  std::int64_t users = 0, events = 0, longest = 0;
};

// Writes the folder asked.output, completely or not at all:
//
//   events.parquet   user, time, item, action, label, user_age, item_category_l1; user by user
//   schema.toml      for hstu prepare parquet --schema
//
// User u has lengths.draw() events at times 0, 1, 2, ...; a length of 0 leaves the user out. A user's values
// depend on (seed, user) alone. Throws UsageError for options out of range and for an existing output.
RandomCounts generate_random(const RandomOptions& asked);

}  // namespace hstu
