// The text of a message as a line of CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hstu {

// The values of a JSON object's `columns`, quoted where they must be: missing ones and null are empty,
// numbers have the digits of the text. Error that says what is wrong: no object, a value that is a list or an
// object, a key of a column twice, no value for any column, more bytes than hstu prepare reads in a row.
std::string csv_of_json(std::string_view text, const std::vector<std::string>& columns);

// A line of CSV as it is. Error unless it is one row that hstu prepare can read, with a field for each column
// and any value, and no header.
std::string csv_of_line(std::string_view text, const std::vector<std::string>& columns);

// The first line of a file.
std::string csv_header(const std::vector<std::string>& columns);

}  // namespace hstu
