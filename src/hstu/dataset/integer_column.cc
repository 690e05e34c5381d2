#include "hstu/dataset/integer_column.h"

#include <algorithm>
#include <limits>
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

}  // namespace

IntegerColumn::Width width_for(std::int64_t smallest, std::int64_t largest) {
  if (smallest < 0 || largest > std::numeric_limits<std::uint32_t>::max())
    return IntegerColumn::Width::k8Bytes;
  if (largest > std::numeric_limits<std::uint16_t>::max()) return IntegerColumn::Width::k4Bytes;
  if (largest > std::numeric_limits<std::uint8_t>::max()) return IntegerColumn::Width::k2Bytes;
  return IntegerColumn::Width::k1Byte;
}

IntegerColumn::IntegerColumn(Width narrowest) : values_(empty_storage(narrowest)) {}

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
        to.resize(from.size());
        std::transform(from.begin(), from.end(), to.begin(),
                       [](auto value) { return static_cast<ElementOf<decltype(to)>>(value); });
      },
      wider, std::as_const(values_));
  values_ = std::move(wider);
}

void IntegerColumn::resize(std::int64_t count) {
  std::visit([&](auto& values) { values.resize(static_cast<std::size_t>(count)); }, values_);
}

void IntegerColumn::set(std::int64_t index, std::int64_t value) {
  widen(width_for(value, value));
  std::visit(
      [&](auto& values) {
        values[static_cast<std::size_t>(index)] = static_cast<ElementOf<decltype(values)>>(value);
      },
      values_);
}

void IntegerColumn::keep(std::span<const std::uint8_t> mask) {
  require(static_cast<std::int64_t>(mask.size()) == size(), "expected a mask of {} elements, found {}",
          size(), mask.size());
  std::visit(
      [&](auto& values) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (mask[i] != 0) values[kept++] = values[i];
        }
        values.resize(kept);
      },
      values_);
}

IntegerColumn IntegerColumn::gather(std::span<const std::uint32_t> rows) const {
  IntegerColumn gathered(width());
  std::visit(
      [&](const auto& from) {
        auto& to = std::get<std::decay_t<decltype(from)>>(gathered.values_);
        to.resize(rows.size());
        std::transform(rows.begin(), rows.end(), to.begin(), [&](std::uint32_t row) { return from[row]; });
      },
      values_);
  return gathered;
}

std::int64_t IntegerColumn::size() const {
  return visit([](const auto& values) { return static_cast<std::int64_t>(values.size()); });
}

std::int64_t IntegerColumn::bytes() const {
  return visit([](const auto& values) { return static_cast<std::int64_t>(std::span(values).size_bytes()); });
}

std::int64_t IntegerColumn::operator[](std::int64_t index) const {
  return visit(
      [&](const auto& values) { return static_cast<std::int64_t>(values[static_cast<std::size_t>(index)]); });
}

std::vector<std::int64_t> IntegerColumn::integers() const {
  return visit([](const auto& values) { return std::vector<std::int64_t>(values.begin(), values.end()); });
}

}  // namespace hstu
