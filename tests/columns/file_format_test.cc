#include "hstu/columns/file_format.h"

#include <arrow/api.h>
#include <arrow/io/compressed.h>
#include <arrow/io/memory.h>
#include <arrow/util/compression.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/parquet_files.h"
#include "hstu/base/error.h"
#include "hstu/columns/column_source.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::HasSubstr;

const std::string kText = "user,item\nu,7\nv,8\n";

std::string packed(const std::string& text, arrow::Compression::type type) {
  const auto codec = arrow::util::Codec::Create(type).ValueOrDie();
  const auto bytes = arrow::io::BufferOutputStream::Create().ValueOrDie();
  const auto stream = arrow::io::CompressedOutputStream::Make(codec.get(), bytes).ValueOrDie();
  EXPECT_TRUE(stream->Write(text).ok());
  EXPECT_TRUE(stream->Close().ok());
  return bytes->Finish().ValueOrDie()->ToString();
}

// The rows of a file with `bytes`, or the error.
std::string read(const std::string& name, const std::string& bytes) {
  const Path file = temporary_folder() / name;
  write_file(file, bytes);
  try {
    const auto source = open_columns(file, std::vector<std::string>{"item"}, {.csv = CsvFormat()});
    std::int64_t rows = 0;
    for (RawBatch batch; source->next(batch);) rows += batch.rows;
    return fmt::format("{} rows", rows);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(FileFormat, OfCsvIsNotDecidedByTheName) {
  for (const char* name : {"log.csv", "log.CSV", "log.txt", "log.dat", "part-00000", "log.csv.gz"})
    EXPECT_EQ(read(name, kText), "2 rows") << name;
  EXPECT_EQ(read("log.TSV", "user\titem\nu\t7\n"), "1 rows");
}

TEST(FileFormat, OfCompressedCsvIsKnownByItsFirstBytes) {
  const std::string gzip = packed(kText, arrow::Compression::GZIP),
                    zstd = packed(kText, arrow::Compression::ZSTD),
                    bzip2 = packed(kText, arrow::Compression::BZ2);
  for (const char* name : {"log.csv", "log.csv.gz", "log.csv.zst", "log.bz2", "part-00000"}) {
    EXPECT_EQ(read(name, gzip), "2 rows") << name;
    EXPECT_EQ(read(name, zstd), "2 rows") << name;
    EXPECT_EQ(read(name, bzip2), "2 rows") << name;
  }
  EXPECT_THAT(read("log.csv.zst", zstd.substr(0, zstd.size() - 3)), HasSubstr("CSV compressed by zstd"));
}

TEST(FileFormat, OfParquetIsNotDecidedByTheName) {
  const Path file = temporary_folder() / "log.parquet";
  write_parquet(file, {{"item", array<arrow::Int64Type>({7, 8, 9})}});
  const std::string bytes = read_file(file);
  for (const char* name : {"log.parquet", "log.csv", "part-00000"})
    EXPECT_EQ(read(name, bytes), "3 rows") << name;
  EXPECT_THAT(read("log.parquet", kText), HasSubstr("cannot be read as Parquet"));
}

TEST(FileFormat, ThatIsNotReadIsNamedWithWhatToDo) {
  for (const auto& [bytes, what] : std::vector<std::pair<std::string, std::string>>{
           {"\xFF\xFEu\0s\0e\0r\0"s, "text in UTF-16, which hstu does not read: write it again in UTF-8"},
           {"u\0s\0e\0r\0,\0"s, "text in UTF-16"},
           {"\xFF\xFE\0\0u\0\0\0"s, "text in UTF-32"},
           {"PK\x03\x04\x14\0\0\0"s, "a zip archive or an Excel workbook"},
           {"\xFD\x37zXZ\0\0"s, "compressed by xz"},
           {"Obj\x01\x04"s, "an Avro file"},
           {"ARROW1\0\0"s, "an Arrow file"}}) {
    for (const char* name : {"log.csv", "log.csv.gz", "log.parquet", "log"})
      EXPECT_THAT(read(name, bytes), AllOf(HasSubstr(name), HasSubstr(what), HasSubstr("Parquet and CSV")));
  }
  EXPECT_THAT(read("log.jsonl", "{\"user\": 1}\n"), HasSubstr("it is JSON"));
  EXPECT_THAT(read("log.bin", "\x01\x02\x03\x04\x05"), HasSubstr("cannot be read as Parquet"));
}

TEST(FileFormat, ThatIsPackedIsNamedToo) {
  std::string tar(600, '\0');
  tar.replace(0, 7, "log.csv").replace(257, 5, "ustar");
  for (const auto& [bytes, what] : std::vector<std::pair<std::string, std::string>>{
           {"\xFF\xFEu\0s\0e\0r\0"s, "it contains text in UTF-16, which hstu does not read: write it again"},
           {"PAR1\x15\x04\x15\0"s, "it contains Parquet, which hstu does not read: unpack it"},
           {packed(kText, arrow::Compression::GZIP), "it contains bytes compressed by gzip"},
           {tar, "it contains a tar archive, which hstu does not read: unpack it"}}) {
    for (const auto compression :
         {arrow::Compression::GZIP, arrow::Compression::ZSTD, arrow::Compression::BZ2})
      EXPECT_THAT(read("log.csv.gz", packed(bytes, compression)), HasSubstr(what));
  }
  EXPECT_THAT(read("log.tar", tar), HasSubstr("it is a tar archive"));
}

TEST(FileFormat, KnowsTheEndingsOfCsv) {
  for (const char* name : {"x.csv", "x.tsv", "x.CSV", "x.csv.gz", "y.z.tsv.gz", "x.csv.zst", "x.csv.bz2"})
    EXPECT_TRUE(looks_like_csv(name)) << name;
  for (const char* name : {"x.parquet", "csv", "x.gz", "x.csv.zip"})
    EXPECT_FALSE(looks_like_csv(name)) << name;
}

}  // namespace
}  // namespace hstu
