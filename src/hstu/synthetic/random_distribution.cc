#include "hstu/synthetic/random_distribution.h"

#include <algorithm>
#include <cmath>

#include "hstu/base/error.h"

namespace hstu {
namespace {

// x clamped in double, rounded half to even (the default rounding of nearbyint), as an integer.
std::int64_t clamped(double x, std::int64_t low, std::int64_t high) {
  if (!(x > static_cast<double>(low))) return low;
  if (x >= static_cast<double>(high)) return high;
  return static_cast<std::int64_t>(std::nearbyint(x));
}

std::int64_t draw_zipf(RandomStream& random, double alpha) {
  const double power = alpha - 1, b = std::pow(2.0, power);
  constexpr double kEnd = 0x1p63;
  while (true) {
    const double u = 1 - random.uniform(), v = random.uniform();
    const double x = std::floor(std::pow(u, -1 / power));
    if (!(x >= 1 && x < kEnd)) continue;
    // t = (1 + 1 / x)^power; t - 1 directly, because 1 + 1 / x is 1 for x above 2^53, and all would be kept.
    const double t_less_1 = std::expm1(power * std::log1p(1 / x));
    if (v * x * t_less_1 / (b - 1) <= (1 + t_less_1) / b) return static_cast<std::int64_t>(x);
  }
}

// By rejection from the density x^-alpha on [1, n + 1), whose integral has a closed inverse.
std::int64_t draw_bounded_zipf(RandomStream& random, double alpha, std::int64_t n) {
  const double end = static_cast<double>(n) + 1, power = 1 - alpha;
  const bool harmonic = std::abs(power) < 1e-9;
  const double whole = harmonic ? std::log(end) : (std::pow(end, power) - 1) / power;
  while (true) {
    const double u = random.uniform() * whole;
    const double y = harmonic ? std::exp(u) : std::pow(1 + u * power, 1 / power);
    const double z = std::min(std::floor(y), static_cast<double>(n));
    if (z >= 0x1p63) continue;  // where n is the largest integer
    // P(z) = z^-alpha, against the integral of the density over [z, z + 1), which is at least
    // (z + 1)^-alpha: the ratio is largest for z = 1.
    // By log1p and expm1: (k + 1) / k is 1 for k above 2^53.
    const auto mass = [&](double k) {
      const double step = std::log1p(1 / k);
      return harmonic ? step : std::pow(k, power) * std::expm1(power * step) / power;
    };
    if (random.uniform() * (1 / mass(1)) <= std::pow(z, -alpha) / mass(z))
      return static_cast<std::int64_t>(z);
  }
}

}  // namespace

std::int64_t Distribution::draw(RandomStream& random) const {
  switch (kind) {
    case DistributionKind::uniform:
      return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low)));
    case DistributionKind::normal:
      return clamped(mean + std * random.normal(), low, high);
    case DistributionKind::lognormal: {
      const double deviation = std > 0 ? std : mean / 2, ratio = deviation / mean;
      const double variance = std::log1p(ratio * ratio);
      return clamped(std::exp(std::log(mean) - variance / 2 + std::sqrt(variance) * random.normal()), low,
                     high);
    }
    case DistributionKind::zipf: {
      const std::int64_t z = draw_zipf(random, alpha);
      return z - 1 > high - low ? high : low + z - 1;
    }
    case DistributionKind::bounded_zipf:
      return low + draw_bounded_zipf(random, alpha, high - low) - 1;
  }
  fail("unreachable");
}

void check_distribution(const Distribution& d, const char* what) {
  const bool open = d.kind == DistributionKind::uniform || d.kind == DistributionKind::bounded_zipf;
  if (d.low < 0) fail_usage("{}: low is {}: expected at least 0", what, d.low);
  if (d.high < d.low + (open ? 1 : 0)) {
    fail_usage("{}: high is {}: expected at least {}, because low is {}", what, d.high,
               d.low + (open ? 1 : 0), d.low);
  }
  if (d.kind == DistributionKind::normal && !(d.std > 0))
    fail_usage("{}: the deviation is {}: a normal distribution needs one above 0", what, d.std);
  if (d.kind == DistributionKind::lognormal && !(d.mean > 0 && d.std >= 0))
    fail_usage("{}: mean {} and deviation {}: a lognormal distribution needs a mean above 0", what, d.mean,
               d.std);
  if (d.kind == DistributionKind::zipf && !(d.alpha > 1))
    fail_usage("{}: alpha is {}: zipf needs more than 1", what, d.alpha);
  if (d.kind == DistributionKind::bounded_zipf && !(d.alpha > 0))
    fail_usage("{}: alpha is {}: bounded_zipf needs more than 0", what, d.alpha);
}

}  // namespace hstu
