#include "hstu/columns/file_format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <string_view>

#include "hstu/base/error.h"
#include "hstu/base/first_bytes.h"

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

[[noreturn]] void refuse(const Path& file, const char* verb, const char* what, const char* advice) {
  fail_usage(
      "{}: it {} {}, which hstu does not read: {}; it reads Parquet and CSV (.csv, .tsv or other text in "
      "UTF-8, plain or compressed by gzip, zstd or bzip2)",
      file.string(), verb, what, advice);
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

void check_unpacked(const Path& file, std::string_view beginning) {
  const FirstBytes* const known = known_first_bytes(beginning);
  if (known == nullptr) return;
  const bool twice = std::string_view(known->what).starts_with("compressed");
  refuse(file, twice ? "contains bytes" : "contains", known->what,
         known->bytes == "PAR1" ? "unpack it" : known->advice);
}

FileFormat format_of(const Path& file) {
  const std::string bytes = first_bytes(file);
  const bool text = is_text(bytes);
  if (!text) {
    for (const Known& known : kKnown) {
      if (bytes.starts_with(known.bytes)) return known.format;
    }
    if (const FirstBytes* const known = known_first_bytes(bytes))
      refuse(file, "is", known->what, known->advice);
  }
  if (looks_like_csv(file)) return FileFormat::kCsv;
  const std::string ending = ending_of(file);
  if (ending == ".parquet" || bytes.empty() || !text) return FileFormat::kParquet;
  if (ending == ".json" || ending == ".jsonl" || ending == ".ndjson")
    refuse(file, "is", "JSON", "write it again as Parquet or CSV");
  return FileFormat::kCsv;
}

}  // namespace hstu
