// Checks of a text from a configuration, a log, a store or a message, before it becomes a part of something
// that has a form of its own.
#pragma once

#include <string_view>

namespace hstu {

// UTF-8 without control characters: what may become a line of a script, a header of HTTP or a part of a path.
bool is_one_line(std::string_view text);
inline constexpr const char* kOneLine = "a text in UTF-8 without control characters";

// One part of a path: a line that is neither "", "." nor ".." and has no "/".
bool is_file_name(std::string_view text);

// File names with "/" between them: a path that stays below the folder that it is joined to.
bool is_path_below(std::string_view text);

// [USER@]HOST that ssh takes as such: its programs take a word with "-" in front as an option.
bool is_login(std::string_view text);

}  // namespace hstu
