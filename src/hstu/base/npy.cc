#include "hstu/base/npy.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>

namespace hstu {
namespace {

constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
constexpr std::size_t kPrefix = 10;  // magic, version, 16-bit header length

// The text after "'key':" in the header's dictionary.
std::string_view dictionary_value(std::string_view dictionary, std::string_view key, const Path& path) {
  const std::string quoted = fmt::format("'{}':", key);
  const std::size_t at = dictionary.find(quoted);
  check(at != std::string_view::npos, "{}: not a NumPy file: its header has no {}", path.string(), key);
  std::string_view rest = dictionary.substr(at + quoted.size());
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest;
}

std::vector<std::int64_t> parse_shape(std::string_view text, const Path& path) {
  const std::size_t end = text.find(')');
  check(!text.empty() && text.front() == '(' && end != std::string_view::npos,
        "{}: not a NumPy file: its header has no shape", path.string());
  std::vector<std::int64_t> shape;
  const char* next = text.data() + 1;
  const char* const stop = text.data() + end;
  while (next < stop) {
    std::int64_t extent = 0;
    const auto [after, error] = std::from_chars(next, stop, extent);
    check(error == std::errc{} && extent >= 0, "{}: not a NumPy file: bad shape {}", path.string(),
          text.substr(0, end + 1));
    shape.push_back(extent);
    next = after;
    while (next < stop && (*next == ',' || *next == ' ')) ++next;
  }
  return shape;
}

std::int64_t element_bytes(std::string_view type, const Path& path) {
  std::int64_t size = 0;
  if (type.size() >= 3) std::from_chars(type.data() + 2, type.data() + type.size(), size);
  const bool known = type.size() == 3 && std::string_view("<|").find(type[0]) != std::string_view::npos &&
                     std::string_view("iufb").find(type[1]) != std::string_view::npos &&
                     (size == 1 || size == 2 || size == 4 || size == 8);
  check(known, "{}: expected little-endian integers, floats or booleans, found NumPy type {}", path.string(),
        type);
  return size;
}

}  // namespace

std::int64_t NpyHeader::count() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

std::string npy_header(const std::string& type, std::span<const std::int64_t> shape) {
  std::string extents;
  for (const std::int64_t extent : shape) extents += fmt::format("{}{},", extents.empty() ? "" : " ", extent);
  if (shape.size() > 1) extents.pop_back();
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, extents);
  const std::size_t total = std::max<std::size_t>(128, (kPrefix + dictionary.size() + 1 + 63) / 64 * 64);
  dictionary.append(total - kPrefix - dictionary.size() - 1, ' ');
  dictionary.push_back('\n');
  std::string header(kMagic);
  header.push_back(static_cast<char>(dictionary.size() & 0xff));
  header.push_back(static_cast<char>(dictionary.size() >> 8));
  return header + dictionary;
}

NpyHeader parse_npy_header(std::span<const std::byte> file, const Path& path) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  check(bytes.size() >= kPrefix && bytes.substr(0, kMagic.size()) == kMagic,
        "{}: not a NumPy file of format 1.0", path.string());
  const std::size_t length =
      static_cast<unsigned char>(bytes[8]) | (static_cast<unsigned char>(bytes[9]) << 8);
  check(bytes.size() >= kPrefix + length, "{}: the file ends inside its header", path.string());
  const std::string_view dictionary = bytes.substr(kPrefix, length);

  NpyHeader header;
  const std::string_view descr = dictionary_value(dictionary, "descr", path);
  const std::size_t quote = descr.find('\'', 1);
  check(!descr.empty() && descr.front() == '\'' && quote != std::string_view::npos,
        "{}: not a plain NumPy column (its type is structured)", path.string());
  header.type = descr.substr(1, quote - 1);
  const bool c_order = dictionary_value(dictionary, "fortran_order", path).starts_with("False");
  check(c_order, "{}: expected C order, found Fortran order", path.string());
  header.shape = parse_shape(dictionary_value(dictionary, "shape", path), path);
  header.data_offset = kPrefix + length;

  std::int64_t expected = element_bytes(header.type, path);
  for (const std::int64_t extent : header.shape) {
    check(extent == 0 || expected <= std::numeric_limits<std::int64_t>::max() / extent,
          "{}: the shape in the header is too large", path.string());
    expected *= extent;
  }
  const auto found = static_cast<std::int64_t>(file.size() - header.data_offset);
  check(found == expected,
        "{}: expected {} bytes of elements, found {}: the file is truncated or has extra bytes",
        path.string(), expected, found);
  return header;
}

}  // namespace hstu
