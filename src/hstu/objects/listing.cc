#include "hstu/objects/listing.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

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

// What is between the next <name> and </name>; `xml` begins behind that afterwards. Elements of one name are
// not nested in these answers.
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

std::string text_of(std::string_view xml, std::string_view name) {
  const auto content = take_element(xml, name);
  return content ? decoded(*content) : "";
}

}  // namespace

ListingPage parse_listing(std::string_view xml) {
  check(xml.find("<ListBucketResult") != xml.npos && xml.find("</ListBucketResult>") != xml.npos,
        "the answer of the object store is no list of objects: is the endpoint that of an S3 store?");
  ListingPage page;
  std::string_view rest = xml;
  while (const auto entry = take_element(rest, "Contents")) {
    StoredObject object{text_of(*entry, "Key"), text_of(*entry, "ETag"), 0};
    const std::string size = text_of(*entry, "Size");
    const auto bytes = parse_number<std::int64_t>(size);
    check(!object.key.empty(), "the answer of the object store lists an object without a key");
    check(bytes && *bytes >= 0, "object \"{}\": the store says the size \"{}\"", object.key, size);
    object.size = *bytes;
    page.objects.push_back(std::move(object));
  }
  if (text_of(xml, "IsTruncated") == "true") {
    page.next = text_of(xml, "NextContinuationToken");
    check(!page.next.empty(),
          "the answer of the object store is not the last one and does not name the next");
  }
  return page;
}

std::string parse_store_error(std::string_view xml) {
  try {
    const std::string code = text_of(xml, "Code"), message = text_of(xml, "Message");
    return code.empty() ? "" : fmt::format("{}: {}", code, message);
  } catch (const Error&) {
    return "";  // the status says enough
  }
}

}  // namespace hstu
