#include "hstu/rows/initial_value.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "hstu/base/random.h"

namespace hstu {
namespace {

void uniform_row(std::uint64_t key, std::int64_t id, float bound, std::int64_t first, std::int64_t end,
                 float* out) {
  for (std::int64_t column = first; column < end;) {
    const Philox4 bits = philox(key, static_cast<std::uint64_t>(id), static_cast<std::uint64_t>(column / 4));
    for (const std::int64_t next = std::min(column / 4 * 4 + 4, end); column < next; ++column)
      *out++ = (2.0f * to_unit_float(bits[static_cast<std::size_t>(column % 4)]) - 1.0f) * bound;
  }
}

double standard_normal(std::uint64_t key, std::int64_t id, std::uint64_t counter) {
  const Philox4 bits = philox(key, static_cast<std::uint64_t>(id), counter);
  const double u = to_unit_double(bits[0], 0), v = to_unit_double(bits[1], 0);
  return std::sqrt(-2.0 * std::log(1.0 - u)) * std::cos(2.0 * std::numbers::pi * v);
}

void normal_row(std::uint64_t key, std::int64_t id, const InitialValue& initial, std::int64_t first,
                std::int64_t end, float* out) {
  for (std::int64_t column = first; column < end; ++column) {
    auto counter = static_cast<std::uint64_t>(column);
    double z = standard_normal(key, id, counter);
    while (initial.kind == InitialKind::truncated_normal && std::abs(z) > 2.0)
      z = standard_normal(key, id, counter += std::uint64_t{1} << 32);
    *out++ = static_cast<float>(initial.mean + initial.deviation * z);
  }
}

}  // namespace

float initial_bound(const InitialValue& initial, std::int64_t rows, std::int64_t dim) {
  switch (initial.kind) {
    case InitialKind::uniform:
      return static_cast<float>(initial.bound > 0 ? initial.bound
                                                  : 1.0 / std::sqrt(static_cast<double>(rows)));
    case InitialKind::xavier:
      return static_cast<float>(std::sqrt(6.0 / static_cast<double>(rows + dim)));
    default:
      return 0;
  }
}

void initial_row(std::uint64_t key, std::int64_t id, const InitialValue& initial, float bound,
                 std::int64_t dim, float* out, std::int64_t first_column) {
  switch (initial.kind) {
    case InitialKind::uniform:
    case InitialKind::xavier:
      return uniform_row(key, id, bound, first_column, first_column + dim, out);
    case InitialKind::normal:
    case InitialKind::truncated_normal:
      return normal_row(key, id, initial, first_column, first_column + dim, out);
    case InitialKind::constant:
      std::fill_n(out, dim, static_cast<float>(initial.value));
  }
}

}  // namespace hstu
