// A column of integers kept in the narrowest type that holds them all: 1, 2 or 4 bytes unsigned, else 8
// signed.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace hstu {

class IntegerColumn {
 public:
  using Storage = std::variant<std::vector<std::uint8_t>, std::vector<std::uint16_t>,
                               std::vector<std::uint32_t>, std::vector<std::int64_t>>;
  enum class Width { k1Byte, k2Bytes, k4Bytes, k8Bytes };  // the alternatives of Storage, in order

  // The column never gets narrower than `narrowest`.
  explicit IntegerColumn(Width narrowest = Width::k1Byte);

  // Room for `count` elements, so that appending does not copy.
  void reserve(std::int64_t count);
  // Appends and, where a value does not fit, first widens the whole column.
  void append(std::span<const std::int64_t> values);
  // Keeps the elements whose mask is set, in their order. The mask is as long as the column.
  void keep(const std::vector<bool>& mask);
  // A column of the elements whose mask is set.
  IntegerColumn select(const std::vector<bool>& mask) const;

  std::int64_t size() const;
  std::int64_t operator[](std::int64_t index) const;
  // Calls visitor(const std::vector<T>&) with T of the current width.
  template <typename Visitor>
  decltype(auto) visit(const Visitor& visitor) const {
    return std::visit(visitor, values_);
  }

 private:
  void widen(Width width);

  Storage values_;
  std::int64_t reserved_ = 0;
};

// Number of different values.
std::int64_t count_distinct(const IntegerColumn& column);

}  // namespace hstu
