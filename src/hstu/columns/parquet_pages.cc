#include "hstu/columns/parquet_pages.h"

#include <algorithm>
#include <limits>

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>

namespace hstu {
namespace {

constexpr std::int64_t kMostHeader = 1 << 16;

// Reads Thrift's compact protocol. After damage, ok() is false and numbers are 0.
class Compact {
 public:
  enum Type : std::uint8_t { stop, yes, no, i8, i16, i32, i64, f64, binary, list, set, map, structure };

  explicit Compact(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  std::size_t at() const { return at_; }

  std::uint8_t byte() {
    if (at_ < bytes_.size()) return bytes_[at_++];
    ok_ = false;
    return 0;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && ok_; shift += 7) {
      const std::uint8_t b = byte();
      value |= std::uint64_t{b & 0x7fu} << shift;
      if (b < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  std::int64_t integer() {
    const std::uint64_t zigzag = varint();
    return static_cast<std::int64_t>(zigzag >> 1) ^ -static_cast<std::int64_t>(zigzag & 1);
  }
  // The type and number of the next field of a structure; `stop` at its end.
  Type field(std::int64_t& number) {
    const std::uint8_t head = byte();
    if (head == stop || !ok_) return stop;
    number = head >> 4 != 0 ? number + (head >> 4) : integer();
    return static_cast<Type>(head & 0xf);
  }

  // Headers nest twice; `depth` bounds what a damaged one costs.
  void skip(Type type, int depth = 0) {
    if (depth > 8) ok_ = false;
    if (!ok_) return;
    switch (type) {
      case yes:
      case no:
        return;
      case i8:
        return advance(1);
      case i16:
      case i32:
      case i64:
        varint();
        return;
      case f64:
        return advance(8);
      case binary:
        return advance(varint());
      case structure: {
        std::int64_t number = 0;
        for (Type inner = field(number); inner != stop; inner = field(number)) skip(inner, depth + 1);
        return;
      }
      default:  // page headers have no lists and maps
        ok_ = false;
    }
  }

 private:
  void advance(std::uint64_t count) {
    if (count > bytes_.size() - at_)
      ok_ = false;
    else
      at_ += static_cast<std::size_t>(count);
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace

std::optional<PageHeader> parse_page_header(std::span<const std::uint8_t> bytes) {
  constexpr std::int64_t kDecoded = 2, kStored = 3, kMostSize = std::numeric_limits<std::int32_t>::max();
  Compact in(bytes);
  PageHeader header{.decoded = -1, .stored = -1, .header = 0};
  std::int64_t number = 0;
  for (Compact::Type type = in.field(number); type != Compact::stop; type = in.field(number)) {
    if (type == Compact::i32 && number == kDecoded)
      header.decoded = in.integer();
    else if (type == Compact::i32 && number == kStored)
      header.stored = in.integer();
    else
      in.skip(type);
  }
  header.header = static_cast<std::int64_t>(in.at());
  const bool sizes =
      header.decoded >= 0 && header.decoded <= kMostSize && header.stored >= 0 && header.stored <= kMostSize;
  return in.ok() && sizes ? std::optional(header) : std::nullopt;
}

std::int64_t largest_page(arrow::io::RandomAccessFile& file, std::int64_t begin, std::int64_t end) {
  std::int64_t largest = 0;
  while (begin < end) {
    const auto bytes = file.ReadAt(begin, std::min(kMostHeader, end - begin));
    if (!bytes.ok()) break;
    const auto header = parse_page_header({(*bytes)->data(), static_cast<std::size_t>((*bytes)->size())});
    if (!header) break;
    largest = std::max(largest, header->decoded);
    begin += header->header + header->stored;
  }
  return largest;
}

}  // namespace hstu
