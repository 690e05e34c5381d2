#include "hstu/synthetic/generate_options.h"

#include <algorithm>
#include <cmath>

#include "hstu/base/error.h"

namespace hstu {
namespace {

template <typename T>
void check_range(const char* option, T value, T low, T high) {
  if (!(value >= low && value <= high)) {
    fail_usage("{} is {}: expected a value from {} to {}", option, value, low, high);
  }
}

}  // namespace

std::int64_t GenerateOptions::artists() const {
  return std::max(genres, static_cast<std::int64_t>(static_cast<double>(items) / items_per_artist));
}

void check_options(const GenerateOptions& options) {
  check_range<std::int64_t>("--users", options.users, 1, 1'000'000'000);
  check_range<std::int64_t>("--days", options.days, 2, 20'000);  // timestamps are 32-bit seconds
  check_range<std::int64_t>("--genres", options.genres, 5, 64);
  check_range<std::int64_t>("--items", options.items, 1, 1'000'000'000);
  check_range<int>("--threads", options.threads, 0, 4096);
  check_range("--events-per-user-day", options.events_per_user_day, 0.1, 50.0);
  check_range("--items-per-artist", options.items_per_artist, 1.0, 1000.0);
  check_range("--popularity-exponent", options.popularity_exponent, 0.0, 3.0);
  check_range("--taste-days", options.taste_days, 0.5, 1e6);
  if (options.items < options.genres) {
    fail_usage("--items is {}: expected at least one item for each of the {} genres (--genres)",
               options.items, options.genres);
  }
  if (options.output.empty()) fail_usage("--output is empty: name a folder that does not exist yet");
}

}  // namespace hstu
