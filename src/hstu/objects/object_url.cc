#include "hstu/objects/object_url.h"

#include <algorithm>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/foreign_text.h"

namespace hstu {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr std::string_view kOfBuckets = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";

}  // namespace

bool is_object_url(std::string_view text) {
  return text.starts_with(kScheme);
}

ObjectUrl parse_object_url(std::string_view text) {
  if (!is_object_url(text)) fail_usage("{}: expected s3://BUCKET/FOLDER", text);
  const std::string_view rest = text.substr(kScheme.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view bucket = rest.substr(0, slash);
  constexpr std::size_t kLongest = 255;
  if (bucket.empty() || bucket.size() > kLongest || bucket.find_first_not_of(kOfBuckets) != bucket.npos ||
      bucket.front() == '.') {
    fail_usage(
        "{}: expected s3://BUCKET/FOLDER, found the bucket \"{}\": it is named by letters, digits, - . _",
        text, bucket);
  }
  std::string prefix(rest.substr(std::min(slash + 1, rest.size())));
  constexpr std::size_t kLongestKey = 1024;  // by the interface of S3
  if (prefix.size() > kLongestKey || !is_one_line(prefix))
    fail_usage("{}: expected a folder of at most {} bytes, {}", text.substr(0, kLongest), kLongestKey,
               kOneLine);
  if (!prefix.empty() && prefix.back() != '/') prefix += '/';
  return {std::string(bucket), prefix};
}

std::string object_name(std::string_view bucket, std::string_view key) {
  return fmt::format("{}{}/{}", kScheme, bucket, key);
}

std::string relative_path(std::string_view key, std::string_view prefix) {
  check(key.starts_with(prefix), "object \"{}\": the store lists it below \"{}\", where it is not", key,
        prefix);
  std::string path(key.substr(prefix.size()));
  check(is_path_below(path),
        "object \"{}\": its key is no path of a file: copy it to another key, or read another folder", key);
  return path;
}

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || (keep_slashes && c == '/');
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace hstu
