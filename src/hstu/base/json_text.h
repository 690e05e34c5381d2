// JSON from files that anyone may have written.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

// Throws Error naming the file, if brackets are nested deeper than any file of hstu: copying and printing
// such a value would exhaust the stack.
void check_json_nesting(std::string_view text, const Path& file);

// What becomes of numbers with a fraction, an exponent or more than 64 bits: a double, or a text of their
// digits.
enum class JsonNumbers { values, texts };

// One JSON value. Throws Error that says what the text is instead: no JSON, with the first bad byte; nested
// too deeply; or an object with a key twice, of which the last value alone would count.
Json parse_json(std::string_view text, JsonNumbers numbers = JsonNumbers::values);

// The same of a file, which errors name.
Json parse_json(std::string_view text, const Path& file);

// An exception of nlohmann's JSON in words of hstu: "the field "samples" is missing", "expected an object,
// found array". Without its prefix "[json.exception.out_of_range.403] " if there are no such words.
std::string json_problem(const std::exception& error);

}  // namespace hstu
