// The text of a message as a line of CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hstu {

// The values of a JSON object's `columns`, quoted where they must be: missing ones and null are empty. Error
// that says what is wrong with the text: no object, a value that is a list or an object.
std::string csv_of_json(std::string_view text, const std::vector<std::string>& columns);

// A line of CSV as it is. Error if it has a line end outside of quotes, or a quote that is not closed.
std::string csv_of_line(std::string_view text);

// The first line of a file.
std::string csv_header(const std::vector<std::string>& columns);

}  // namespace hstu
