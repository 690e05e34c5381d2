// SHA-256 and MD5 of files, for comparison with published digests. Our own files have XXH3 checksums
// (base/checksum.h).
#pragma once

#include <string>

#include "hstu/base/files.h"

namespace hstu {

enum class Digest { kSha256, kMd5 };

// Hexadecimal digits; reads the file once in small blocks. Throws Error naming the file if it cannot be read.
std::string file_digest(const Path& path, Digest digest);

}  // namespace hstu
