#include "hstu/kafka/message_text.h"

#include <utility>

#include "hstu/base/csv_text.h"
#include "hstu/base/error.h"
#include "hstu/base/json_text.h"
#include "hstu/base/utf8.h"

namespace hstu {
namespace {

std::string field_of(const Json& value, const std::string& name) {
  if (value.is_null()) return "";
  if (value.is_string()) return csv_field(value.get<std::string>());
  check(value.is_primitive(), "\"{}\": expected a number, a text or null, found {}", name, value.type_name());
  return value.dump();
}

// The number of fields, as hstu prepare reads them: a quote has a meaning only where a field begins.
std::size_t count_fields(std::string_view line) {
  enum class At { begin, plain, quoted, behind } at = At::begin;
  std::size_t fields = 1;
  for (const char c : line) {
    if (at == At::quoted) {
      if (c == '"') at = At::behind;
    } else if (c == ',') {
      ++fields;
      at = At::begin;
    } else {
      check(c != '\n' && c != '\r', "expected one line of CSV, found several");
      check(at != At::behind || c == '"', "text follows the closing quote of a field");
      at = c == '"' && at != At::plain ? At::quoted : At::plain;
    }
  }
  check(at != At::quoted, "a quote is not closed");
  return fields;
}

std::string checked(std::string line, const std::vector<std::string>& columns) {
  check(line.find_first_not_of(',') != std::string::npos, "expected a value of {}, found none",
        fmt::join(columns, " or "));
  check(line.size() < kLongestCsvRow, "expected a row of less than {} bytes, found {}", kLongestCsvRow,
        line.size());
  return line;
}

}  // namespace

std::string csv_of_json(std::string_view text, const std::vector<std::string>& columns) {
  const Json object = parse_json(text, JsonNumbers::texts);
  check(object.is_object(), "expected a JSON object");
  std::string line;
  for (const std::string& column : columns) {
    if (&column != columns.data()) line += ',';
    if (const auto value = object.find(column); value != object.end()) line += field_of(*value, column);
  }
  return checked(std::move(line), columns);
}

std::string csv_of_line(std::string_view text, const std::vector<std::string>& columns) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  check(is_utf8(text), "expected text in UTF-8");
  const std::size_t fields = count_fields(text);
  check(fields == columns.size(), "expected {} fields, as in --columns, found {}", columns.size(), fields);
  check(text != csv_header(columns), "expected an event, found the names of the columns");
  return checked(std::string(text), columns);
}

std::string csv_header(const std::vector<std::string>& columns) {
  std::string line;
  for (const std::string& column : columns) line += (line.empty() ? "" : ",") + csv_field(column);
  return line;
}

}  // namespace hstu
