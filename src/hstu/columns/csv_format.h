// How CSV files say what Parquet files say themselves: the delimiter, the columns, their types.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hstu {

struct CsvFormat {
  char delimiter = '\0';                   // 0: a tab in *.tsv and *.tsv.gz, otherwise a comma
  std::vector<std::string> columns = {};   // names, for files without a header
  std::vector<std::string> integers = {};  // columns that hold integers
  std::vector<std::string> numbers = {};   // columns that hold numbers; all others hold texts
  std::optional<char> quote = '"';  // begins and ends fields that contain delimiters; absent: none does
  std::optional<char> escape = {};  // before a character that is meant as itself; absent: none
};

}  // namespace hstu
