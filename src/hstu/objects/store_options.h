// Where a store of objects is, and who asks it.
#pragma once

#include <cstdint>
#include <string>

namespace hstu {

struct StoreOptions {
  std::string endpoint;              // http://HOST:PORT or https://HOST; "": that of AWS in the region
  std::string region = "us-east-1";  // that signatures name
  std::string credentials;           // file (credentials.h); "": requests are not signed
  std::string profile = "default";   // section of the file
  std::int64_t part_bytes = std::int64_t{64} << 20;  // of a request; longer files are sent in parts
};

}  // namespace hstu
