// A store of objects with the interface of S3, read over HTTP.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/objects/credentials.h"
#include "hstu/objects/listing.h"
#include "hstu/objects/object_url.h"

namespace hstu {

struct StoreOptions {
  std::string endpoint;              // http://HOST:PORT or https://HOST; "": that of AWS in the region
  std::string region = "us-east-1";  // that signatures name
  std::string credentials;           // file (credentials.h); "": requests are not signed
  std::string profile = "default";   // section of the file
};

// Requests that fail for a reason that may pass (no connection, a connection that breaks or is silent, status
// 408, 429 and 5xx) are repeated. Others, and those that fail too often, throw Error naming object, status,
// the store's code and what to do. May be used by several threads.
class ObjectStore {
 public:
  // UsageError for an endpoint or a file of credentials that is none.
  explicit ObjectStore(const StoreOptions& options);

  // All objects below url.prefix, in the order of the store: that of the bytes of their keys.
  std::vector<StoredObject> list(const ObjectUrl& url) const;

  // Writes an object to `file`; what an earlier call wrote of it is kept, and the rest is asked for. Error if
  // the object is not the one that was listed any more.
  void download(const std::string& bucket, const StoredObject& object, const Path& file) const;

 private:
  using Sink = std::function<void(const char*, std::size_t)>;
  struct Answer;
  Answer send(const std::string& url, const std::vector<std::string>& headers, std::int64_t first,
              const Sink& sink) const;
  [[noreturn]] void refuse(const std::string& name, const Answer& answer) const;
  std::string get_text(const std::string& name, const std::string& url) const;

  StoreOptions options_;
  Credentials credentials_;
};

}  // namespace hstu
