#include "hstu/dataset/integer_column.h"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {
namespace {

template <typename Vector>
using ElementOf = typename std::decay_t<Vector>::value_type;

IntegerColumn::Storage empty_storage(IntegerColumn::Width width) {
  switch (width) {
    case IntegerColumn::Width::k1Byte:
      return std::vector<std::uint8_t>{};
    case IntegerColumn::Width::k2Bytes:
      return std::vector<std::uint16_t>{};
    case IntegerColumn::Width::k4Bytes:
      return std::vector<std::uint32_t>{};
    case IntegerColumn::Width::k8Bytes:
      break;
  }
  return std::vector<std::int64_t>{};
}

IntegerColumn::Width width_for(std::int64_t smallest, std::int64_t largest) {
  if (smallest < 0 || largest > std::numeric_limits<std::uint32_t>::max())
    return IntegerColumn::Width::k8Bytes;
  if (largest > std::numeric_limits<std::uint16_t>::max()) return IntegerColumn::Width::k4Bytes;
  if (largest > std::numeric_limits<std::uint8_t>::max()) return IntegerColumn::Width::k2Bytes;
  return IntegerColumn::Width::k1Byte;
}

}  // namespace

IntegerColumn::IntegerColumn(Width narrowest) : values_(empty_storage(narrowest)) {}

void IntegerColumn::reserve(std::int64_t count) {
  reserved_ = std::max(reserved_, count);
  std::visit([&](auto& values) { values.reserve(static_cast<std::size_t>(reserved_)); }, values_);
}

void IntegerColumn::append(std::span<const std::int64_t> values) {
  if (values.empty()) return;
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  widen(width_for(*smallest, *largest));
  std::visit(
      [&](auto& stored) {
        const std::size_t old_size = stored.size();
        stored.resize(old_size + values.size());
        std::transform(values.begin(), values.end(), stored.begin() + static_cast<std::ptrdiff_t>(old_size),
                       [](std::int64_t value) { return static_cast<ElementOf<decltype(stored)>>(value); });
      },
      values_);
}

void IntegerColumn::widen(Width width) {
  if (static_cast<std::size_t>(width) <= values_.index()) return;
  Storage wider = empty_storage(width);
  std::visit(
      [&](auto& to, const auto& from) {
        to.reserve(std::max(from.size(), static_cast<std::size_t>(reserved_)));
        for (const auto value : from) to.push_back(static_cast<ElementOf<decltype(to)>>(value));
      },
      wider, std::as_const(values_));
  values_ = std::move(wider);
}

void IntegerColumn::keep(const std::vector<bool>& mask) {
  require(static_cast<std::int64_t>(mask.size()) == size(), "expected a mask of {} elements, found {}",
          size(), mask.size());
  std::visit(
      [&](auto& values) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (mask[i]) values[kept++] = values[i];
        }
        values.resize(kept);
      },
      values_);
}

IntegerColumn IntegerColumn::select(const std::vector<bool>& mask) const {
  IntegerColumn selected(static_cast<Width>(values_.index()));
  std::visit(
      [&](const auto& values) {
        auto& to = std::get<std::decay_t<decltype(values)>>(selected.values_);
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (mask[i]) to.push_back(values[i]);
        }
      },
      values_);
  return selected;
}

std::int64_t IntegerColumn::size() const {
  return visit([](const auto& values) { return static_cast<std::int64_t>(values.size()); });
}

std::int64_t IntegerColumn::operator[](std::int64_t index) const {
  return visit(
      [&](const auto& values) { return static_cast<std::int64_t>(values[static_cast<std::size_t>(index)]); });
}

std::int64_t count_distinct(const IntegerColumn& column) {
  return column.visit([](const auto& values) -> std::int64_t {
    if (values.empty()) return 0;
    const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
    // One bit an id while that stays below a few bytes an element; sparse ids (hashes) go through a set.
    const auto range = static_cast<std::uint64_t>(*largest) - static_cast<std::uint64_t>(*smallest);
    if (range / 32 > values.size() + 1024) {
      const std::unordered_set<std::int64_t> seen(values.begin(), values.end());
      return static_cast<std::int64_t>(seen.size());
    }
    std::vector<bool> seen(range + 1);
    for (const auto value : values) {
      seen[static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(*smallest)] = true;
    }
    return std::count(seen.begin(), seen.end(), true);
  });
}

}  // namespace hstu
