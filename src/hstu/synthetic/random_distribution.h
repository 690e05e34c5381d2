// Distributions of integers, for random sequences: those of NVIDIA's recsys-examples (RandomDistribution).
#pragma once

#include <cstdint>
#include <limits>

#include "hstu/base/choice.h"
#include "hstu/base/random.h"

namespace hstu {

enum class DistributionKind {
  uniform,       // integers of [low, high)
  normal,        // N(mean, std), clamped to [low, high], rounded half to even
  lognormal,     // e^N with mean `mean` and deviation `std` of the result; clamped and rounded likewise
  zipf,          // z + low - 1, clamped to [low, high], with P(z) proportional to z^-alpha for z = 1, 2, ...
  bounded_zipf,  // low + z - 1 with P(z) proportional to z^-alpha for z = 1 .. high - low
};
inline constexpr Choice<DistributionKind> kDistributionKinds[] = {
    {"uniform", DistributionKind::uniform},           {"normal", DistributionKind::normal},
    {"lognormal", DistributionKind::lognormal},       {"zipf", DistributionKind::zipf},
    {"bounded_zipf", DistributionKind::bounded_zipf},
};

struct Distribution {
  DistributionKind kind = DistributionKind::uniform;
  std::int64_t low = 0;
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
  double mean = 0;     // normal, lognormal
  double std = 0;      // normal, lognormal; 0 for lognormal: mean / 2
  double alpha = 1.5;  // zipf, bounded_zipf

  // The next value. Zipf draws by rejection from z = floor(u^(-1 / (alpha - 1))) (Devroye, "Non-Uniform
  // Random Variate Generation", 1986, chapter X.6), of which z above 2^63 - 1 are drawn again.
  std::int64_t draw(RandomStream& random) const;
};

// Throws UsageError naming `what` and the parameter that is out of range: high > low (uniform, bounded_zipf)
// or high >= low, std > 0 (normal), mean > 0 and std >= 0 (lognormal), alpha > 1 (zipf), alpha > 0
// (bounded_zipf).
void check_distribution(const Distribution& distribution, const char* what);

}  // namespace hstu
