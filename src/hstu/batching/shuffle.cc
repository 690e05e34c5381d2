#include "hstu/batching/shuffle.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hstu/base/random.h"

namespace hstu {

void shuffle_window(std::span<std::int64_t> positions, double fraction, std::uint64_t seed,
                    std::int64_t epoch, std::int64_t window) {
  if (positions.size() <= 1 || fraction <= 0) return;
  const double wanted = std::nearbyint(std::min(fraction, 1.0) * static_cast<double>(positions.size()));
  const std::size_t run = std::max<std::size_t>(1, static_cast<std::size_t>(wanted));
  const std::uint64_t purpose = derive_key(seed, "window shuffle");
  const std::uint64_t key =
      mix64(mix64(purpose + static_cast<std::uint64_t>(epoch)) ^ static_cast<std::uint64_t>(window));
  RandomStream random{.key = key, .index = 0};
  for (std::size_t begin = 0; begin < positions.size(); begin += run) {
    const auto part = positions.subspan(begin, std::min(run, positions.size() - begin));
    for (std::size_t i = part.size() - 1; i > 0; --i) {
      std::swap(part[i], part[static_cast<std::size_t>(random.below(i + 1))]);
    }
  }
}

}  // namespace hstu
