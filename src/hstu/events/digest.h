// SHA-256 and MD5 of files, which others publish beside their data. Our own files carry XXH3
// (base/checksum.h).
#pragma once

#include <string>

#include "hstu/base/files.h"

namespace hstu {

enum class Digest { kSha256, kMd5 };

// Hexadecimal digits, from reading the file once in small blocks. Throws Error naming the file that cannot be
// read.
std::string file_digest(const Path& path, Digest digest);

}  // namespace hstu
