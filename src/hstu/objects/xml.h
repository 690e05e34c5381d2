// The little of XML that object stores answer with.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hstu {

// What is between the next <name> and </name>; `xml` begins behind that afterwards. Elements of one name are
// not nested in these answers. Error if the end is missing.
std::optional<std::string_view> take_element(std::string_view& xml, std::string_view name);

// The text of the first element of that name, without entities; "" if there is none.
std::string element_text(std::string_view xml, std::string_view name);

// The same for a text that becomes a part of requests: Error if it has control characters.
std::string element_line(std::string_view xml, std::string_view name);

}  // namespace hstu
