// Keys of object stores, from a file in the format of ~/.aws/credentials.
#pragma once

#include <string>

#include "hstu/base/files.h"

namespace hstu {

struct Credentials {
  std::string key_id, secret;  // "": requests are not signed
  std::string token;           // of a session; "": none
};

// The section [profile] of the file. UsageError if it is missing or has no keys.
Credentials read_credentials(const Path& file, const std::string& profile);

}  // namespace hstu
