#include "hstu/base/foreign_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "hstu/base/text.h"

namespace hstu {

bool is_one_line(std::string_view text) {
  return text.find_first_of("\n\t") == text.npos && printable(text) == text;
}

bool is_file_name(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && text.find('/') == text.npos && is_one_line(text);
}

bool is_path_below(std::string_view text) {
  return std::ranges::all_of(split(text, '/'), is_file_name);
}

bool is_login(std::string_view text) {
  constexpr std::string_view kLoginCharacters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._@:%[]/+";
  return !text.empty() && text.front() != '-' && text.find_first_not_of(kLoginCharacters) == text.npos;
}

}  // namespace hstu
