// Sizes in bytes as words: "512MiB", "1.5GiB", "300MB", "2G", "1000000".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace hstu {

// A number and its unit. Units: KiB, MiB, GiB, TiB, PiB or K, M, G, T, P of 1024; kB, MB, GB, TB, PB of 1000;
// B or none. Upper and lower case are the same.
struct Size {
  double number = 0;
  std::string unit;         // as it was written; "" for none
  std::int64_t factor = 1;  // bytes of the unit

  std::int64_t bytes() const;  // rounded
};

// nullopt if `word` is not a size below 2^63 bytes.
std::optional<Size> parse_size(std::string_view word);

// For an option of an integer of bytes: turns a size into bytes. A size outside [least, most] bytes is
// refused with the bounds in its own unit.
CLI::Validator size_between(std::int64_t least, std::int64_t most);

// For an option of a whole number without a largest value. CLI11's own PositiveNumber would print that of a
// double, of 309 digits.
CLI::Validator at_least(std::int64_t least);

}  // namespace hstu
