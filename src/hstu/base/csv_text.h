// Fields of CSV as they are written.
#pragma once

#include <cstddef>
#include <string>

namespace hstu {

// hstu prepare reads no longer row.
inline constexpr std::size_t kLongestCsvRow = std::size_t{1} << 20;

// Quoted where it has to be.
inline std::string csv_field(const std::string& value) {
  if (value.find_first_of(",\"\r\n") == std::string::npos) return value;
  std::string text = "\"";
  for (const char c : value) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + '"';
}

}  // namespace hstu
