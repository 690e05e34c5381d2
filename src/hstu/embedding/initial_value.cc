#include "hstu/embedding/initial_value.h"

#include <algorithm>

#include "hstu/base/random.h"

namespace hstu {

void initial_row(std::uint64_t key, std::int64_t id, float bound, std::int64_t dim, float* out) {
  for (std::int64_t column = 0; column < dim; column += 4) {
    const Philox4 bits = philox(key, static_cast<std::uint64_t>(id), static_cast<std::uint64_t>(column / 4));
    const std::int64_t words = std::min<std::int64_t>(4, dim - column);
    for (std::int64_t w = 0; w < words; ++w)
      out[column + w] = (2.0f * to_unit_float(bits[static_cast<std::size_t>(w)]) - 1.0f) * bound;
  }
}

}  // namespace hstu
