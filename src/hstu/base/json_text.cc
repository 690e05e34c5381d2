#include "hstu/base/json_text.h"

#include <optional>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr int kDeepest = 64;

// What is between `first`, with which the text begins, and the first `second` after it.
std::string between(std::string_view text, std::string_view first, std::string_view second) {
  const std::size_t end = text.find(second, first.size());
  return std::string(text.substr(first.size(), end - first.size()));
}

// What follows `second`, if the text begins with `first` and has `second`.
std::optional<std::string> behind(std::string_view text, std::string_view first, std::string_view second) {
  const std::size_t at = text.find(second);
  if (!text.starts_with(first) || at == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(at + second.size()));
}

}  // namespace

void check_json_nesting(std::string_view text, const Path& file) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      check(++depth <= kDeepest,
            "{}: byte {}: its lists and objects are nested deeper than {}: hstu did not write it",
            file.string(), i, kDeepest);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

Json parse_json(std::string_view text, const Path& file) {
  check_json_nesting(text, file);
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    fail("{}: byte {}: not JSON: the file is torn or was altered", file.string(), error.byte);
  } catch (const nlohmann::json::exception&) {  // a number beyond a double
    fail("{}: a number is too large: the file is torn or was altered", file.string());
  }
}

std::string json_problem(const std::exception& error) {
  std::string_view text = error.what();
  const std::size_t end = text.find("] ");
  if (!text.starts_with("[json.exception.") || end == std::string_view::npos) return std::string(text);
  text.remove_prefix(end + 2);
  if (const auto type = behind(text, "cannot use ", " with ")) return "expected an object, found " + *type;
  if (const auto type = behind(text, "type must be ", ", but is "))
    return fmt::format("expected a value of the type {}, found {}",
                       between(text, "type must be ", ", but is "), *type);
  if (text.starts_with("key '") && text.ends_with("' not found"))
    return fmt::format("the field \"{}\" is missing", between(text, "key '", "' not found"));
  if (text.starts_with("array index ")) return "a list has too few elements";
  return std::string(text);
}

}  // namespace hstu
