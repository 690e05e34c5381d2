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

Rule distinct(Rule rule) {
  rule.distinct = true;
  return rule;
}

Rule or_random() {
  return {.or_random = true};
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
  using Kind = std::filesystem::file_type;
  std::error_code error;
  const Kind kind = std::filesystem::status(path, error).type();
  const auto refuse = [&](const std::string& problem) {
    fail_usage("cannot read the configuration {}: {}", path.string(), problem);
  };
  if (kind == Kind::not_found) refuse("the file does not exist");
  if (kind == Kind::directory) {
    const Path inside = path / "config.toml";
    refuse(std::filesystem::exists(inside, error) ? "it is a folder: name " + inside.string()
                                                  : "it is a folder: name a file");
  }
  // It is read more than once: by every rank, and again when the run continues.
  if (kind == Kind::fifo || kind == Kind::character || kind == Kind::socket)
    refuse(fmt::format("it is a {}: write its text to a file, and name that", kind == Kind::fifo ? "pipe"
                                                                              : kind == Kind::socket
                                                                                  ? "socket"
                                                                                  : "device"));
  return read_file(path);
}

std::string config_hash(std::string_view text) {
  return checksum(text);
}

}  // namespace hstu
