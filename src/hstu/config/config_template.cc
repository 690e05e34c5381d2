#include "hstu/config/config_template.h"

#include <algorithm>

#include <fmt/format.h>

#include "hstu/base/text.h"

namespace hstu {

std::string toml_comment(std::string_view text) {
  constexpr std::size_t kWidth = 110;
  std::string lines, line = "#";
  for (const std::string& word : split(text, ' ')) {
    if (line.size() + 1 + word.size() > kWidth) {
      lines += line + "\n";
      line = "#";
    }
    line += " " + word;
  }
  return lines + line + "\n";
}

void ConfigTemplate::visit(const Field& field) {
  const std::string limits = field.rule.text();
  text_ += toml_comment(fmt::format("{}{}", field.doc, limits.empty() ? "" : fmt::format(" ({})", limits)));
  const bool active = field.rule.required && lists_ == 0;
  text_ += fmt::format("{}{} = {}\n", active ? "" : "#", field.name, toml_value(field.value));
}

void ConfigTemplate::enter(std::string_view name, std::string_view doc) {
  path_.push_back(path_.empty() ? std::string(name) : fmt::format("{}.{}", path_.back(), name));
  text_ += fmt::format("\n{}[{}]\n", toml_comment(doc), path_.back());
}

void ConfigTemplate::leave() {
  lists_ = std::max(0, lists_ - 1);
  path_.pop_back();
}

std::optional<std::size_t> ConfigTemplate::enter_list(std::string_view /*name*/, std::size_t /*size*/,
                                                      std::string_view doc) {
  list_doc_ = doc;
  return 1;
}

void ConfigTemplate::enter_element(std::string_view name, std::size_t /*index*/) {
  path_.push_back(path_.empty() ? std::string(name) : fmt::format("{}.{}", path_.back(), name));
  ++lists_;
  text_ += fmt::format("\n{}#[[{}]]\n", toml_comment(list_doc_ + "; any number of these"), path_.back());
}

}  // namespace hstu
