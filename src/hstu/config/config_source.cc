#include "hstu/config/config_source.h"

#include <cstdlib>
#include <optional>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/first_bytes.h"
#include "hstu/config/config.h"

namespace hstu {
namespace {

constexpr std::size_t kFirstBytes = 16;           // as many as known_first_bytes() needs
constexpr std::string_view kOverride = "--set ";  // how the source of an override begins

toml::table parse_override(const std::string& word) {
  const std::string source = std::string(kOverride) + word;
  const std::size_t at = word.find('=');
  if (at == std::string::npos || at == 0) fail_usage("{}: expected section.key=value", source);
  const std::string key = word.substr(0, at), value = word.substr(at + 1);
  try {
    if (value.find('\n') == std::string::npos) return toml::parse(fmt::format("{} = {}", key, value), source);
  } catch (const toml::parse_error&) {
    // Not a TOML value: a string without quotes.
  }
  try {
    return toml::parse(fmt::format("{} = {}", key, toml_quoted(value)), source);
  } catch (const toml::parse_error& error) {
    fail_usage("{}: expected section.key=value: {}", source, error.description());
  }
}

void merge(toml::table& into, toml::table&& from) {
  for (auto&& [key, node] : from) {
    toml::node* there = into.get(key.str());
    if (there != nullptr && there->is_table() && node.is_table()) {
      merge(*there->as_table(), std::move(*node.as_table()));
    } else {
      into.insert_or_assign(key, std::move(node));
    }
  }
}

}  // namespace

toml::table config_tables(std::string_view text, std::string_view source,
                          std::span<const std::string> overrides) {
  toml::table tables;
  if (const FirstBytes* const known = known_first_bytes(text.substr(0, kFirstBytes)))
    fail_usage("{}: expected text in UTF-8, and it is {}: {}", source, known->what, known->advice);
  try {
    tables = toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    fail_usage("{} line {}: not TOML: {}", source, error.source().begin.line, error.description());
  }
  for (const std::string& word : overrides) merge(tables, parse_override(word));
  return tables;
}

toml::table parse_value(std::string_view text) {
  try {
    return toml::parse(fmt::format("value = {}", text));
  } catch (const toml::parse_error&) {
    fail_usage("\"{}\" is not a value", text);
  }
}

std::optional<std::string> override_text(const toml::source_region& source) {
  if (source.path == nullptr || !source.path->starts_with(kOverride)) return std::nullopt;
  const std::size_t at = source.path->find('='), key = at - kOverride.size();
  if (source.begin.column != key + 4) return std::nullopt;  // parse_override() has parsed "key = value"
  return source.path->substr(at + 1);
}

std::string place(const toml::source_region& source) {
  if (source.path == nullptr) return "unknown place";
  if (source.path->starts_with(kOverride)) return *source.path;
  return fmt::format("{} line {}", *source.path, source.begin.line);
}

std::string expand_environment(std::string_view text) {
  std::string result;
  while (true) {
    const std::size_t at = text.find("${");
    if (at != std::string_view::npos && at > 0 && text[at - 1] == '$') {
      result += fmt::format("{}{{", text.substr(0, at));  // "$${" is a plain "${"
      text.remove_prefix(at + 2);
      continue;
    }
    result += text.substr(0, at);
    if (at == std::string_view::npos) return result;
    const std::size_t end = text.find('}', at);
    if (end == std::string_view::npos) fail_usage("expected \"}}\" after \"{}\"", text.substr(at));
    const std::string_view inside = text.substr(at + 2, end - at - 2);
    const std::size_t dash = inside.find(":-");
    const std::string name(inside.substr(0, dash));
    const char* value = std::getenv(name.c_str());
    if (dash != std::string_view::npos && (value == nullptr || *value == '\0')) {
      result += inside.substr(dash + 2);
    } else if (value == nullptr) {
      fail_usage("the environment variable {0} is not set: set it, or write ${{{0}:-default}}", name);
    } else {
      result += value;
    }
    text.remove_prefix(end + 1);
  }
}

}  // namespace hstu
