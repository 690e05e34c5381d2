// One signed request over HTTP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hstu/objects/credentials.h"

namespace hstu {

struct ClientSigner {
  std::string region;
  Credentials credentials;  // without key_id: requests are not signed
};

// What a request sends: `bytes` of them, in order from the first one.
struct ClientBody {
  std::int64_t bytes = 0;
  // Copies what is at `offset`, at most `size` bytes and at least one. What it throws ends the request.
  std::function<std::size_t(std::int64_t offset, char* to, std::size_t size)> read;
};

struct ClientRequest {
  std::string url;
  const char* method = "GET";  // or PUT, POST, DELETE
  std::vector<std::string> headers = {};
  ClientBody body = {};    // of PUT and POST
  std::int64_t first = 0;  // byte of the object from which on it is wanted
  // Takes the body of a good answer, from that byte on; what it throws ends the request.
  std::function<void(const char*, std::size_t)> sink = [](const char*, std::size_t) {};
};

struct ClientAnswer {
  long status = 0;         // 0: none came
  std::string broken;      // why the connection broke; "": it did not
  bool untrusted = false;  // its certificate is not valid
  std::string etag;
  std::string text;  // the body of an answer that is an error

  bool good() const;
  // Whether the same request may succeed later.
  bool may_pass() const;
};

// Throws what body.read or sink threw, and Error if libcurl is none.
ClientAnswer send_request(const ClientRequest& request, const ClientSigner& signer);

// The whole of `text`, which must remain.
ClientBody body_of(const std::string& text);

}  // namespace hstu
