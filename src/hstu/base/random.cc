#include "hstu/base/random.h"

#include <cmath>
#include <numbers>

#include <xxhash.h>

namespace hstu {

std::uint64_t derive_key(std::uint64_t seed, std::string_view purpose) {
  return mix64(seed ^ XXH64(purpose.data(), purpose.size(), 0));
}

std::uint64_t RandomStream::bits() {
  const Philox4 r = philox(key, index++, 0);
  return (std::uint64_t{r[0]} << 32) | r[1];
}

double RandomStream::uniform() {
  return static_cast<double>(bits() >> 11) * 0x1p-53;
}

double RandomStream::normal() {
  const Philox4 r = philox(key, index++, 1);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - to_unit_double(r[0], r[1])));
  return radius * std::cos(2.0 * std::numbers::pi * to_unit_double(r[2], r[3]));
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  // Multiply-shift: the bias is below bound / 2^64.
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{bits()} * bound) >> 64);
}

}  // namespace hstu
