#include "hstu/config/config_difference.h"

#include <algorithm>
#include <map>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

bool means(const std::string& name, const std::string& key) {
  return key == name || key.starts_with(name + ".") || key.starts_with(name + "[");
}

std::string shown(const std::string& value) {
  return value.empty() ? "absent" : value;
}

}  // namespace

void ConfigFlattener::visit(const Field& field) {
  values_.emplace_back(prefix_.back() + std::string(field.name), toml_value(field.value));
}

void ConfigFlattener::enter(std::string_view name, std::string_view /*doc*/) {
  prefix_.push_back(fmt::format("{}{}.", prefix_.back(), name));
}

void ConfigFlattener::leave() {
  prefix_.pop_back();
}

std::optional<std::size_t> ConfigFlattener::enter_list(std::string_view /*name*/, std::size_t /*size*/,
                                                       std::string_view /*doc*/) {
  return std::nullopt;
}

void ConfigFlattener::enter_element(std::string_view name, std::size_t index) {
  prefix_.push_back(fmt::format("{}{}[{}].", prefix_.back(), name, index));
}

std::vector<ConfigDifference> differences(const ConfigFlattener::Values& before,
                                          const ConfigFlattener::Values& after) {
  const std::map<std::string, std::string> old(before.begin(), before.end()), now(after.begin(), after.end());
  std::vector<ConfigDifference> found;
  for (const auto& [key, value] : after) {
    const auto at = old.find(key);
    if (at == old.end() || at->second != value)
      found.push_back({key, at == old.end() ? "" : at->second, value});
  }
  for (const auto& [key, value] : before) {
    if (!now.contains(key)) found.push_back({key, value, ""});
  }
  return found;
}

void check_differences(const std::vector<ConfigDifference>& differences, std::span<const std::string> allowed,
                       const ConfigFlattener::Values& known, std::string_view what) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : known) keys.push_back(key);
  for (const std::string& name : allowed) {
    const auto meant = [&](const std::string& key) { return means(name, key); };
    if (std::none_of(keys.begin(), keys.end(), meant))
      fail_usage("--allow-change {}: the key does not exist{}", name, suggestion(name, keys));
  }
  std::string lines;
  std::vector<std::string> refused;
  for (const ConfigDifference& difference : differences) {
    const auto covers = [&](const std::string& name) { return means(name, difference.key); };
    if (std::any_of(allowed.begin(), allowed.end(), covers)) continue;
    refused.push_back(difference.key);
    lines += fmt::format("  {}: {} there, {} here\n", difference.key, shown(difference.before),
                         shown(difference.after));
  }
  if (refused.empty()) return;
  fail_usage(
      "{} has another configuration:\n{}Use its values, or permit these changes: "
      "--allow-change {}",
      what, lines, fmt::join(refused, ","));
}

}  // namespace hstu
