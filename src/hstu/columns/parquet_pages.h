// Sizes of the pages of Parquet files, from their headers alone: nothing is decoded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace arrow::io {
class RandomAccessFile;
}  // namespace arrow::io

namespace hstu {

struct PageHeader {
  std::int64_t decoded = 0, stored = 0;  // bytes of the page
  std::int64_t header = 0;               // bytes of the header before it
};

// The header at the beginning of `bytes`, in Thrift's compact protocol; none if it is damaged or longer.
std::optional<PageHeader> parse_page_header(std::span<const std::uint8_t> bytes);

// Decoded bytes of the largest page in bytes [begin, end) of `file`, a column chunk: as far as its headers
// can be read.
std::int64_t largest_page(arrow::io::RandomAccessFile& file, std::int64_t begin, std::int64_t end);

}  // namespace hstu
