#include "hstu/mlperf/log_lines.h"

#include <charconv>
#include <optional>

#include "hstu/base/error.h"
#include "hstu/base/json_text.h"

namespace hstu {
namespace {

std::string utf8_of_latin1(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x80) {
      text += byte;
    } else {
      text += static_cast<char>(0xC0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return text;
}

// Python's JSON has these numbers; none of them passes a rule, as null does not.
std::string without_special_numbers(std::string_view text) {
  std::string plain;
  bool quoted = false;
  while (!text.empty()) {
    std::size_t taken = 1;
    if (text[0] == '\\' && quoted && text.size() > 1) {
      taken = 2;
    } else if (text[0] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      for (const std::string_view word : {"NaN", "-Infinity", "Infinity"}) {
        if (!text.starts_with(word)) continue;
        plain += "null";
        text.remove_prefix(word.size());
        taken = 0;
        break;
      }
    }
    plain += text.substr(0, taken);
    text.remove_prefix(taken);
  }
  return plain;
}

// As Python's float(): also a text with a number.
std::optional<double> number_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  if (json.is_number()) return json.get<double>();
  if (!json.is_string()) return std::nullopt;
  const auto& text = json.get_ref<const std::string&>();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

void read_line(std::string_view line, const Path& file, MllogFile& log, std::size_t number) {
  const auto refuse = [&](const std::string& why) {
    log.errors.push_back(fmt::format("line {}: {}: {}", number, why, line.substr(0, 120)));
  };
  if (line.size() < kMllogToken.size()) return refuse("nothing follows the token");
  const std::string_view body = line.substr(kMllogToken.size());
  check_json_nesting(body, file);
  Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded()) json = Json::parse(without_special_numbers(body), nullptr, false);
  if (json.is_discarded()) return refuse("no JSON");
  if (!json.is_object()) return refuse("no JSON object");
  for (const char* member : {"time_ms", "key", "value", "metadata"})
    if (!json.contains(member))
      return refuse(fmt::format("{} is missing, which ends the official tool", member));
  const std::optional<double> time = number_of(json["time_ms"]);
  if (!time) return refuse("time_ms is no number");
  MllogLine read{std::string(line), number, "", *time, json["value"], json["metadata"]};
  if (json["key"].is_string()) read.key = json["key"].get<std::string>();
  log.lines.push_back(std::move(read));
}

}  // namespace

MllogFile read_mllog(const Path& file) {
  check_input_file(file);
  const std::string text = utf8_of_latin1(read_file(file));
  MllogFile log;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const std::size_t token = line.rfind(kMllogToken);
    if (token == std::string_view::npos) continue;
    read_line(stripped(line.substr(token)), file, log, number++);
  }
  return log;
}

}  // namespace hstu
