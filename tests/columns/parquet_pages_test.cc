#include "hstu/columns/parquet_pages.h"

#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/parquet_files.h"
#include "hstu/base/error.h"
#include "hstu/columns/parquet_source.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::HasSubstr;

// Fields 1 to 3: type 0, 300 bytes decoded, 200 stored; field 5: the header of data, a structure with a
// structure.
const std::vector<std::uint8_t> kHeader = {0x15, 0x00, 0x15, 0xd8, 0x04, 0x15, 0x90, 0x03, 0x2c, 0x15,
                                           0x02, 0x4c, 0x18, 0x01, 'x',  0x11, 0x00, 0x00, 0x00};

TEST(ParquetPages, HeadersHaveTheSizes) {
  std::vector<std::uint8_t> bytes = kHeader;
  bytes.push_back(0xff);  // the page
  const auto header = parse_page_header(bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->decoded, 300);
  EXPECT_EQ(header->stored, 200);
  EXPECT_EQ(header->header, static_cast<std::int64_t>(kHeader.size()));
}

TEST(ParquetPages, DamagedHeadersHaveNone) {
  for (std::size_t size = 0; size < kHeader.size(); ++size)
    EXPECT_FALSE(parse_page_header(std::span(kHeader).first(size))) << size << " bytes";
  EXPECT_FALSE(parse_page_header(std::vector<std::uint8_t>(100, 0x1c))) << "structures without an end";
  EXPECT_FALSE(parse_page_header(std::vector<std::uint8_t>(100, 0xff)));
  EXPECT_FALSE(parse_page_header(std::vector<std::uint8_t>{0x00})) << "no sizes";
  EXPECT_FALSE(parse_page_header(std::vector<std::uint8_t>{0x25, 0x01, 0x15, 0x02, 0x00})) << "a size of -1";
}

// 4 MiB of texts in one page, where decoding may take 1 MiB.
TEST(ParquetPages, TheOneThatTheMemoryCannotHoldIsNamed) {
  const Path file = temporary_folder() / "wide.parquet";
  std::vector<std::optional<std::string>> wide;
  std::vector<std::optional<std::int64_t>> numbers;
  for (int i = 0; i < 64; ++i) {
    wide.emplace_back(std::string(std::size_t{1} << 16, static_cast<char>('0' + i)));
    numbers.emplace_back(i);
  }
  write_parquet(file, {{"id", array<arrow::Int64Type>(numbers)}, {"note", texts(wide)}});
  const auto read = [&](const std::string& column) {
    const std::array columns{column};
    const auto source = open_parquet(file, columns, {});
    RawBatch batch;
    while (source->next(batch)) {
    }
  };
  set_parquet_memory(1 << 20);
  EXPECT_NO_THROW(read("id")) << "a column that is not read may have any pages";
  try {
    read("note");
    ADD_FAILURE() << "the memory was exceeded";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("wide.parquet"));
    EXPECT_THAT(error.what(), HasSubstr("column \"note\", takes 4.0 MiB"));
    EXPECT_THAT(error.what(), HasSubstr("increase --memory"));
  }
  set_parquet_memory(std::int64_t{1} << 40);
}

}  // namespace
}  // namespace hstu
