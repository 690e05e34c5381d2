#include <cmath>
#include <type_traits>

#include "hstu/base/error.h"
#include "hstu/config/config.h"

namespace hstu {
namespace {

// A literal "${" is written "$${", because the reader would replace it by an environment variable.
std::string written(const std::string& text) {
  std::string escaped = text;
  for (std::size_t at = 0; (at = escaped.find("${", at)) != std::string::npos; at += 3)
    escaped.insert(at, 1, '$');
  return toml_quoted(escaped);
}

std::string written(const Path& path) {
  return written(path.string());
}

std::string written(bool value) {
  return value ? "true" : "false";
}

template <typename T>
requires std::is_arithmetic_v<T> std::string written(T value) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    if (value == kRandomNumber) return "\"random\"";
  }
  std::string text = fmt::format("{}", value);  // the shortest digits that read back to the same value
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  }
  return text;
}

template <typename T>
std::string written(const std::vector<T>& list) {
  std::vector<std::string> elements;
  elements.reserve(list.size());
  for (const T& element : list) elements.push_back(written(element));
  return fmt::format("[{}]", fmt::join(elements, ", "));
}

std::string written(const StringLists& lists) {
  std::vector<std::string> entries;
  for (const auto& [key, list] : lists)
    entries.push_back(fmt::format("{} = {}", toml_quoted(key), written(list)));
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

template <typename T>
constexpr const char* kTypeName = std::is_same_v<T, bool>                       ? "true or false"
                                  : std::is_integral_v<T>                       ? "integer"
                                  : std::is_floating_point_v<T>                 ? "number"
                                  : std::is_same_v<T, std::string>              ? "string"
                                  : std::is_same_v<T, Path>                     ? "path"
                                  : std::is_same_v<T, std::vector<std::string>> ? "strings"
                                  : std::is_same_v<T, std::vector<double>>      ? "numbers"
                                  : std::is_same_v<T, StringLists>              ? "lists of strings"
                                                                                : "integers";

std::string joined(const std::string& prefix, std::string_view name) {
  return prefix.empty() ? std::string(name) : fmt::format("{}.{}", prefix, name);
}

// A table cell must not contain an unescaped "|".
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

}  // namespace

std::string toml_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += fmt::format("\\{}", c);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string toml_value(const FieldPointer& value) {
  return std::visit([](const auto* pointer) { return written(*pointer); }, value);
}

void ConfigWriter::visit(const Field& field) {
  blocks_[path_.back().second].body += fmt::format("{} = {}\n", field.name, toml_value(field.value));
}

void ConfigWriter::open(std::string_view name, bool element) {
  const std::string path = joined(path_.back().first, name);
  blocks_.push_back({element ? fmt::format("[[{}]]\n", path) : fmt::format("[{}]\n", path), ""});
  path_.emplace_back(path, blocks_.size() - 1);
}

void ConfigWriter::enter(std::string_view name, std::string_view /*doc*/) {
  open(name, false);
}

void ConfigWriter::leave() {
  path_.pop_back();
}

std::optional<std::size_t> ConfigWriter::enter_list(std::string_view name, std::size_t size,
                                                    std::string_view /*doc*/) {
  if (size == 0) blocks_[path_.back().second].body += fmt::format("{} = []\n", name);
  return std::nullopt;
}

void ConfigWriter::enter_element(std::string_view name, std::size_t /*index*/) {
  open(name, true);
}

std::string ConfigWriter::text() const {
  std::string text;
  for (const Block& block : blocks_) {
    const std::string part = block.header + block.body;
    if (!text.empty() && !part.empty()) text += '\n';
    text += part;
  }
  return text;
}

void ConfigReference::visit(const Field& field) {
  if (!in_table_) text_ += "\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n";
  in_table_ = true;
  const char* type = std::visit(
      [](const auto* pointer) { return kTypeName<std::remove_cvref_t<decltype(*pointer)>>; }, field.value);
  const std::string limits = field.rule.text();
  text_ += fmt::format(
      "| `{}` | {}{}{} | {} | {} |\n", field.name, type, limits.empty() ? "" : ", ", cell(limits),
      field.rule.required ? "required" : fmt::format("`{}`", cell(toml_value(field.value))), cell(field.doc));
}

void ConfigReference::enter(std::string_view name, std::string_view doc) {
  path_.push_back(joined(path_.empty() ? "" : path_.back(), name));
  text_ += fmt::format("{}## [{}]\n\n{}.\n", text_.empty() ? "" : "\n", path_.back(), doc);
  in_table_ = false;
}

bool ConfigReference::enter_optional(std::string_view name, bool /*present*/, std::string_view doc) {
  enter(name, doc);
  return true;
}

void ConfigReference::leave() {
  path_.pop_back();
  in_table_ = false;
}

std::optional<std::size_t> ConfigReference::enter_list(std::string_view /*name*/, std::size_t /*size*/,
                                                       std::string_view doc) {
  list_doc_ = doc;
  return 1;
}

void ConfigReference::enter_element(std::string_view name, std::size_t /*index*/) {
  path_.push_back(joined(path_.empty() ? "" : path_.back(), name));
  text_ += fmt::format("{}## [[{}]]\n\n{}.\n", text_.empty() ? "" : "\n", path_.back(), list_doc_);
  in_table_ = false;
}

}  // namespace hstu
