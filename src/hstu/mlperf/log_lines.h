// Reads logs as the official parser does: which lines count, and how their JSON is understood.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

inline constexpr std::string_view kMllogToken = ":::MLLOG ";

struct MllogLine {
  std::string text;        // from the token on, as UTF-8
  std::size_t number = 0;  // among the lines with the token, from 0
  std::string key;         // "": no text
  double time_ms = 0;
  Json value, metadata;
};

struct MllogFile {
  std::vector<MllogLine> lines;
  std::vector<std::string> errors;  // of lines that the official tools refuse, or that end them
};

// Bytes are characters of Latin-1; what precedes the last token of a line is dropped, and lines without one
// are ignored. Error if the file cannot be read.
MllogFile read_mllog(const Path& file);

}  // namespace hstu
