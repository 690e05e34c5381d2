#include "hstu/base/first_bytes.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace hstu {
namespace {

using namespace std::string_view_literals;

constexpr const char* kUtf16 = "write it again in UTF-8 (iconv -f UTF-16 -t UTF-8)";
constexpr const char* kUnpack = "unpack it";
constexpr const char* kPack = "unpack it, or compress it by gzip or zstd";
constexpr const char* kConvert = "write it again as Parquet or CSV";

constexpr std::array kKnown{
    FirstBytes{"\xFF\xFE\0\0"sv, "text in UTF-32", "write it again in UTF-8 (iconv -f UTF-32 -t UTF-8)"},
    FirstBytes{"\xFF\xFE"sv, "text in UTF-16", kUtf16},
    FirstBytes{"\xFE\xFF"sv, "text in UTF-16", kUtf16},
    FirstBytes{"PAR1"sv, "Parquet", "give the file a name that ends in .parquet"},
    FirstBytes{"\x1F\x8B"sv, "compressed by gzip", kUnpack},
    FirstBytes{"\x28\xB5\x2F\xFD"sv, "compressed by zstd", kUnpack},
    FirstBytes{"BZh"sv, "compressed by bzip2", kUnpack},
    FirstBytes{"PK\x03\x04"sv, "a zip archive or an Excel workbook", "unpack it, or save it as CSV"},
    FirstBytes{"\xFD\x37zXZ\0"sv, "compressed by xz", kPack},
    FirstBytes{"\x04\x22\x4D\x18"sv, "compressed by lz4", kPack},
    FirstBytes{"\xFF\x06\0\0sNaPpY"sv, "compressed by snappy", kPack},
    FirstBytes{"7z\xBC\xAF\x27\x1C"sv, "a 7z archive", kUnpack},
    FirstBytes{"PARE"sv, "Parquet with an encrypted footer", "write it again without encryption"},
    FirstBytes{"ARROW1"sv, "an Arrow file", kConvert},
    FirstBytes{"FEA1"sv, "a Feather file", kConvert},
    FirstBytes{"ORC"sv, "an ORC file", kConvert},
    FirstBytes{"Obj\x01"sv, "an Avro file", kConvert},
    FirstBytes{"SQLite format 3\0"sv, "an SQLite database", kConvert},
    FirstBytes{"\xD0\xCF\x11\xE0"sv, "an Excel workbook", "save it as CSV"},
};
constexpr FirstBytes kUnmarkedUtf16{""sv, "text in UTF-16", kUtf16};
constexpr FirstBytes kTar{"ustar"sv, "a tar archive", kUnpack};
constexpr std::size_t kTarAt = 257;  // behind the name and the sizes of its first file

}  // namespace

bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || byte == '\t' || byte == '\n' || byte == '\r';
  });
}

const FirstBytes* known_first_bytes(std::string_view beginning) {
  if (is_text(beginning)) return nullptr;
  for (const FirstBytes& known : kKnown)
    if (beginning.starts_with(known.bytes)) return &known;
  if (beginning.size() > kTarAt && beginning.substr(kTarAt).starts_with(kTar.bytes)) return &kTar;
  const bool wide = beginning.size() >= 4 && beginning[1] == '\0' && beginning[3] == '\0' &&
                    beginning[0] != '\0' && beginning[2] != '\0';
  return wide ? &kUnmarkedUtf16 : nullptr;
}

}  // namespace hstu
