// The order of anchors within a training window.
#pragma once

#include <cstdint>
#include <span>

namespace hstu {

// Shuffles one window's positions in place: a pure function of (seed, epoch, window, fraction, positions).
// fraction <= 0: unchanged. fraction >= 1: a permutation of the whole window. Otherwise the window is divided
// into consecutive runs of max(1, round(fraction * n)) positions (halves to even) and every run is permuted
// separately, so no position leaves its run. Permutations are Fisher-Yates shuffles, drawn from one
// counter-based stream per window.
void shuffle_window(std::span<std::int64_t> positions, double fraction, std::uint64_t seed,
                    std::int64_t epoch, std::int64_t window);

}  // namespace hstu
