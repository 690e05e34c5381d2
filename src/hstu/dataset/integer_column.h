// A column of integers in the narrowest type that can represent them all: 1, 2 or 4 bytes unsigned, otherwise
// 8 bytes signed.
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

  // The column is never narrower than `narrowest`.
  explicit IntegerColumn(Width narrowest = Width::k1Byte);

  // Appends; if a value does not fit, first widens the whole column.
  void append(std::span<const std::int64_t> values);
  // Sets the number of elements; new ones are 0.
  void resize(std::int64_t count);
  // Replaces the element at `index`, which must exist; widens like append.
  void set(std::int64_t index, std::int64_t value);
  // Keeps the elements whose mask is not 0, in order. The mask has as many elements as the column.
  void keep(std::span<const std::uint8_t> mask);
  // The elements at `rows`, in that order.
  IntegerColumn gather(std::span<const std::uint32_t> rows) const;

  std::int64_t size() const;
  std::int64_t bytes() const;  // of the elements
  Width width() const { return static_cast<Width>(values_.index()); }
  std::int64_t operator[](std::int64_t index) const;
  std::vector<std::int64_t> integers() const;
  // Calls visitor(const std::vector<T>&) with T of the current width.
  template <typename Visitor>
  decltype(auto) visit(const Visitor& visitor) const {
    return std::visit(visitor, values_);
  }

  // Calls visitor(std::vector<T>&), which may change the elements.
  template <typename Visitor>
  void overwrite(const Visitor& visitor) {
    std::visit(visitor, values_);
  }

 private:
  void widen(Width width);

  Storage values_;
};

// The narrowest width that can represent both values, and so all values between them.
IntegerColumn::Width width_for(std::int64_t smallest, std::int64_t largest);

}  // namespace hstu
