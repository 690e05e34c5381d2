#include "hstu/kafka/message_text.h"

#include "hstu/base/csv_text.h"
#include "hstu/base/error.h"
#include "hstu/base/json_text.h"

namespace hstu {
namespace {

std::string field_of(const Json& value, const std::string& name) {
  if (value.is_null()) return "";
  if (value.is_string()) return csv_field(value.get<std::string>());
  check(value.is_primitive(), "\"{}\": expected a number, a text or null, found {}", name, value.type_name());
  return value.dump();
}

}  // namespace

std::string csv_of_json(std::string_view text, const std::vector<std::string>& columns) {
  const Json object = parse_json(text);
  check(object.is_object(), "expected a JSON object");
  std::string line;
  for (const std::string& column : columns) {
    if (&column != columns.data()) line += ',';
    if (const auto value = object.find(column); value != object.end()) line += field_of(*value, column);
  }
  return line;
}

std::string csv_of_line(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  bool in_quotes = false;
  for (const char c : text) {
    if (c == '"') in_quotes = !in_quotes;
    check(in_quotes || c != '\n', "expected one line of CSV, found several");
  }
  check(!in_quotes, "a quote is not closed");
  return std::string(text);
}

std::string csv_header(const std::vector<std::string>& columns) {
  std::string line;
  for (const std::string& column : columns) line += (line.empty() ? "" : ",") + csv_field(column);
  return line;
}

}  // namespace hstu
