#include "hstu/columns/file_format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <string_view>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using namespace std::string_view_literals;

struct Known {
  std::string_view bytes;  // at the beginning
  FileFormat format;
};
constexpr std::array kKnown{Known{"PAR1"sv, FileFormat::kParquet}, Known{"\x1F\x8B"sv, FileFormat::kGzip},
                            Known{"\x28\xB5\x2F\xFD"sv, FileFormat::kZstd},
                            Known{"BZh"sv, FileFormat::kBzip2}};

constexpr const char* kUtf8 = "write it again in UTF-8 (iconv -f UTF-16 -t UTF-8)";
constexpr const char* kUnpack = "unpack it";
constexpr const char* kConvert = "write it again as Parquet or CSV";

struct Refused {
  std::string_view bytes;  // at the beginning
  const char* what;
  const char* advice;
};
constexpr std::array kRefused{
    Refused{"\xFF\xFE"sv, "text in UTF-16", kUtf8},
    Refused{"\xFE\xFF"sv, "text in UTF-16", kUtf8},
    Refused{"PK\x03\x04"sv, "a zip archive or an Excel workbook", "unpack it, or save it as CSV"},
    Refused{"\xFD\x37zXZ\0"sv, "compressed by xz", "unpack it, or compress it by gzip or zstd"},
    Refused{"\x04\x22\x4D\x18"sv, "compressed by lz4", "unpack it, or compress it by gzip or zstd"},
    Refused{"\xFF\x06\0\0sNaPpY"sv, "compressed by snappy", "unpack it, or compress it by gzip or zstd"},
    Refused{"7z\xBC\xAF\x27\x1C"sv, "a 7z archive", kUnpack},
    Refused{"PARE"sv, "Parquet with an encrypted footer", "write it again without encryption"},
    Refused{"ARROW1"sv, "an Arrow file", kConvert},
    Refused{"FEA1"sv, "a Feather file", kConvert},
    Refused{"ORC"sv, "an ORC file", kConvert},
    Refused{"Obj\x01"sv, "an Avro file", kConvert},
    Refused{"SQLite format 3\0"sv, "an SQLite database", kConvert},
    Refused{"\xD0\xCF\x11\xE0"sv, "an Excel workbook", "save it as CSV"},
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string first_bytes(const Path& file) {
  constexpr std::size_t kBytes = 4096;
  check_input_file(file);
  std::string bytes(kBytes, '\0');
  std::ifstream input(file, std::ios::binary);
  input.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(input.gcount()));
  return bytes;
}

bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || byte == '\t' || byte == '\n' || byte == '\r';
  });
}

[[noreturn]] void refuse(const Path& file, const char* what, const char* advice) {
  fail_usage(
      "{}: it is {}, which hstu does not read: {}; it reads Parquet and CSV (.csv, .tsv or other text in "
      "UTF-8, plain or compressed by gzip, zstd or bzip2)",
      file.string(), what, advice);
}

}  // namespace

std::string ending_of(const Path& file) {
  std::string ending = lower(file.extension().string());
  if (ending == ".gz" || ending == ".zst" || ending == ".bz2")
    ending = lower(file.stem().extension().string());
  return ending;
}

bool looks_like_csv(const Path& file) {
  const std::string ending = ending_of(file);
  return ending == ".csv" || ending == ".tsv";
}

FileFormat format_of(const Path& file) {
  const std::string bytes = first_bytes(file);
  const bool text = is_text(bytes);
  if (!text) {
    for (const Known& known : kKnown) {
      if (bytes.starts_with(known.bytes)) return known.format;
    }
    for (const Refused& refused : kRefused) {
      if (bytes.starts_with(refused.bytes)) refuse(file, refused.what, refused.advice);
    }
    if (bytes.size() >= 4 && bytes[1] == '\0' && bytes[3] == '\0' && bytes[0] != '\0' && bytes[2] != '\0')
      refuse(file, "text in UTF-16", kUtf8);
  }
  if (looks_like_csv(file)) return FileFormat::kCsv;
  const std::string ending = ending_of(file);
  if (ending == ".parquet" || bytes.empty() || !text) return FileFormat::kParquet;
  if (ending == ".json" || ending == ".jsonl" || ending == ".ndjson") refuse(file, "JSON", kConvert);
  return FileFormat::kCsv;
}

}  // namespace hstu
