// A store of objects with the interface of S3, over HTTP.
#pragma once

#include <atomic>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/objects/http_client.h"
#include "hstu/objects/listing.h"
#include "hstu/objects/object_url.h"
#include "hstu/objects/store_options.h"

namespace hstu {

// A request in words of the store.
struct StoreRequest {
  const char* method = "GET";
  std::string bucket;
  std::string key = {};    // "": of the bucket
  std::string query = {};  // names in their order, each with "=", encoded
  ClientBody body = {};
  std::string about = {};  // that messages name; "": the object
};

struct StoreAnswer {
  std::string text, etag;
  std::string refused;  // the code of the store's error; "": it did as it was asked
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
  // the object is not the one that was listed any more, or when `stop` is set meanwhile.
  void download(const std::string& bucket, const StoredObject& object, const Path& file,
                const std::atomic<bool>* stop = nullptr) const;

  // The whole text of an object; nothing if there is none.
  std::optional<std::string> read(const std::string& bucket, const std::string& key) const;

  // Makes an object, or replaces it: readers see the old one or the new one.
  void write(const std::string& bucket, const std::string& key, const std::string& text) const;

  // Also of an object that is not there.
  void remove(const std::string& bucket, const std::string& key) const;

  // Any other request. An error of the store whose code is in `expected` is returned.
  StoreAnswer ask(const StoreRequest& request, std::initializer_list<std::string_view> expected = {}) const;

 private:
  [[noreturn]] void refuse(const std::string& name, const ClientAnswer& answer,
                           const StoreError& error) const;
  std::string address(const std::string& bucket, const std::string& key, const std::string& query) const;

  std::string endpoint_;
  ClientSigner signer_;
};

}  // namespace hstu
