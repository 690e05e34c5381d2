// A load of HTTP requests for measuring a server.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

struct LoadOptions {
  std::string host = "127.0.0.1";
  int port = 8080;
  std::string path = "/score";
  Path requests = {};  // JSON lines: bodies, sent one after the other, again from the first
  double rate = 0;     // requests a second, whether the answers come or not; 0: each connection sends its
                       // next when it has the answer
  double seconds = 10;
  std::int64_t connections = 64;
};

// Sends requests and measures from the moment at which each should have been sent to its answer: a server
// that answers late is not spared the requests that wait for a connection. Throws Error if the server cannot
// be reached or the file has no line.
Json measure_server(const LoadOptions& options);

}  // namespace hstu
