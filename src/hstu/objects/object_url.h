// Names of objects: s3://BUCKET/KEY, and their form in requests.
#pragma once

#include <string>
#include <string_view>

namespace hstu {

struct ObjectUrl {
  std::string bucket;
  std::string prefix;  // of keys: "", or a folder that ends with /
};

// Whether the text begins with s3://.
bool is_object_url(std::string_view text);

// s3://BUCKET or s3://BUCKET/FOLDER. UsageError for anything else.
ObjectUrl parse_object_url(std::string_view text);

// For messages: s3://BUCKET/KEY.
std::string object_name(std::string_view bucket, std::string_view key);

// The part of `key` behind `prefix`, which becomes a path below a folder. Error for keys that would be
// elsewhere, or are no path: those with an empty part, `.`, `..`, or control characters.
std::string relative_path(std::string_view key, std::string_view prefix);

// Bytes but A-Z a-z 0-9 - . _ ~ as %XX, as signatures need them; `keep_slashes`: but / too.
std::string percent_encoded(std::string_view text, bool keep_slashes);

}  // namespace hstu
