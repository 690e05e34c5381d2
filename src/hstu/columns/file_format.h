// What a file of events is: by its first bytes, not by its name alone.
#pragma once

#include <string>
#include <string_view>

#include "hstu/base/files.h"

namespace hstu {

enum class FileFormat { kParquet, kCsv, kGzip, kZstd, kBzip2 };  // the last three: CSV, compressed

// By the first bytes. Text is CSV, unless the name ends in .parquet; where the bytes say nothing, as in an
// empty file, the name decides (looks_like_csv). UsageError for what cannot be read: archives, UTF-16, other
// compressions, Excel, ORC, Avro, Arrow, JSON, with what to do instead. Error if the file cannot be opened.
FileFormat format_of(const Path& file);

// UsageError if the bytes at the beginning of a file that was unpacked are no text but another format.
void check_unpacked(const Path& file, std::string_view beginning);

// Whether the name, in capital or small letters, ends in .csv or .tsv, also before .gz, .zst or .bz2.
bool looks_like_csv(const Path& file);

// The name's ending before one of a compression, in small letters: ".tsv" of "log.TSV.gz".
std::string ending_of(const Path& file);

}  // namespace hstu
