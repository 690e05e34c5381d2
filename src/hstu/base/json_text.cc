#include "hstu/base/json_text.h"

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr int kDeepest = 64;

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
  const std::string_view text = error.what();
  const std::size_t end = text.find("] ");
  return std::string(
      text.starts_with("[json.exception.") && end != std::string_view::npos ? text.substr(end + 2) : text);
}

}  // namespace hstu
