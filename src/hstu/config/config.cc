#include "hstu/config/config.h"

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"

namespace hstu {

std::string Rule::text() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!words.empty()) return fmt::format("one of {}", fmt::join(words, ", "));
  if (low > -kInfinity && high < kInfinity) return fmt::format("in [{}, {}]", low, high);
  if (low > -kInfinity) return fmt::format("{} {}", low_excluded ? ">" : ">=", low);
  return "";
}

namespace rule {

Rule positive() {
  return {.low = 0, .low_excluded = true};
}

Rule at_least(double low) {
  return {.low = low};
}

Rule between(double low, double high) {
  return {.low = low, .high = high};
}

Rule parsed_by(void (*parse)(const std::string&)) {
  return {.parse = parse};
}

Rule or_integer(Rule rule) {
  rule.or_integer = true;
  return rule;
}

Rule required(Rule rule) {
  rule.required = true;
  return rule;
}

}  // namespace rule

bool ConfigFields::enter_optional(std::string_view name, bool present, std::string_view doc) {
  if (present) enter(name, doc);
  return present;
}

std::string read_config_file(const Path& path) {
  if (!std::filesystem::is_regular_file(path)) {
    fail_usage("cannot read the configuration {}: the file does not exist", path.string());
  }
  return read_file(path);
}

std::string config_hash(std::string_view text) {
  return checksum(text);
}

}  // namespace hstu
