#include "hstu/objects/xml.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/foreign_text.h"

namespace hstu {
namespace {

// UTF-8.
void append_character(std::string& text, std::uint32_t code) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12));
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xF0 | (code >> 18));
    tail(12), tail(6), tail(0);
  }
}

std::uint32_t code_of(std::string_view digits) {
  const bool hexadecimal = digits.starts_with('x');
  std::uint32_t code = 0;
  if (hexadecimal) digits.remove_prefix(1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), code, hexadecimal ? 16 : 10);
  constexpr std::uint32_t kMost = 0x10FFFF;
  check(error == std::errc{} && end == digits.data() + digits.size() && code != 0 && code <= kMost,
        "the answer of the object store has the character \"&#{};\", which does not exist", digits);
  return code;
}

std::string decoded(std::string_view text) {
  constexpr std::pair<std::string_view, char> kEntities[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  std::string result;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find('&'), text.size());
    result += text.substr(0, begin);
    text.remove_prefix(begin);
    if (text.empty()) break;
    const std::size_t end = text.find(';');
    check(end != text.npos, "the answer of the object store has an & that ends with no ;");
    const std::string_view name = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    if (name.starts_with('#')) {
      append_character(result, code_of(name.substr(1)));
      continue;
    }
    const std::size_t before = result.size();
    for (const auto& [entity, character] : kEntities)
      if (name == entity) result += character;
    check(result.size() > before, "the answer of the object store has the unknown \"&{};\"", name);
  }
  return result;
}

}  // namespace

std::optional<std::string_view> take_element(std::string_view& xml, std::string_view name) {
  const std::string open = fmt::format("<{}>", name), close = fmt::format("</{}>", name);
  const std::size_t begin = xml.find(open);
  if (begin == xml.npos) return std::nullopt;
  const std::string_view content = xml.substr(begin + open.size());
  const std::size_t end = content.find(close);
  check(end != content.npos, "the answer of the object store ends within <{}>", name);
  xml = content.substr(end + close.size());
  return content.substr(0, end);
}

std::string element_text(std::string_view xml, std::string_view name) {
  const auto content = take_element(xml, name);
  return content ? decoded(*content) : "";
}

std::string element_line(std::string_view xml, std::string_view name) {
  std::string text = element_text(xml, name);
  check(is_one_line(text), "the answer of the object store has control characters in <{}>: \"{}\"", name,
        text);
  return text;
}

}  // namespace hstu
