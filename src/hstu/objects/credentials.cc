#include "hstu/objects/credentials.h"

#include <string_view>

#include "hstu/base/error.h"
#include "hstu/base/foreign_text.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

Credentials read_credentials(const Path& file, const std::string& profile) {
  check_input_file(file);
  Credentials credentials;
  bool here = false;
  for (const std::string& line : split(read_file(file), '\n')) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (text.front() == '[' && text.back() == ']') {
      here = trimmed(text.substr(1, text.size() - 2)) == profile;
      continue;
    }
    const std::size_t equals = text.find('=');
    if (!here || equals == text.npos) continue;
    const std::string_view key = trimmed(text.substr(0, equals));
    const std::string value(trimmed(text.substr(equals + 1)));
    if (!is_one_line(value)) fail_usage("{}: {}: expected {}", file.string(), key, kOneLine);
    if (key == "aws_access_key_id") credentials.key_id = value;
    if (key == "aws_secret_access_key") credentials.secret = value;
    if (key == "aws_session_token") credentials.token = value;
  }
  if (credentials.key_id.empty() || credentials.secret.empty()) {
    fail_usage(
        "{}: expected a section [{}] with aws_access_key_id and aws_secret_access_key; another section "
        "is named by --s3-profile",
        file.string(), profile);
  }
  return credentials;
}

}  // namespace hstu
