#include "hstu/objects/object_store.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/base/foreign_text.h"
#include "hstu/objects/curl_library.h"

namespace hstu {
namespace {

constexpr int kMostFailures = 7;  // in a row; the waits between them are 6 s together
constexpr long kPreconditionFailed = 412;
constexpr std::size_t kLongestText = std::size_t{64} << 20;

void wait_before(int attempt) {
  std::this_thread::sleep_for(std::chrono::milliseconds(50) * (1 << attempt));
}

// The file that a download continues.
class GrowingFile {
 public:
  explicit GrowingFile(const Path& path)
      : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    check(descriptor_ >= 0, "{}: cannot be written: {}", path.string(), failure_reason(errno));
    size_ = static_cast<std::int64_t>(std::filesystem::file_size(path));
  }
  ~GrowingFile() { ::close(descriptor_); }
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  void write(const char* bytes, std::size_t size) {
    while (size > 0) {
      const ssize_t written = ::write(descriptor_, bytes, size);
      if (written < 0 && errno == EINTR) continue;
      check(written > 0, "{}: cannot be written: {}", path_.string(), failure_reason(errno));
      bytes += written, size -= static_cast<std::size_t>(written), size_ += written;
    }
  }
  void sync() const {
    check(::fsync(descriptor_) == 0, "{}: cannot be written: {}", path_.string(), failure_reason(errno));
  }
  std::int64_t size() const { return size_; }

 private:
  Path path_;
  int descriptor_;
  std::int64_t size_ = 0;
};

}  // namespace

ObjectStore::ObjectStore(const StoreOptions& options) : endpoint_(options.endpoint) {
  if (options.region.empty() || options.region.find_first_of(": /") != std::string::npos ||
      !is_one_line(options.region))
    fail_usage("--s3-region or store.region \"{}\": expected the name of a region, such as eu-west-1",
               options.region);
  if (endpoint_.empty()) endpoint_ = fmt::format("https://s3.{}.amazonaws.com", options.region);
  if (!(endpoint_.starts_with("http://") || endpoint_.starts_with("https://")) ||
      endpoint_.find_first_of("?#@ ") != std::string::npos || !is_one_line(endpoint_)) {
    fail_usage("--s3-endpoint or store.endpoint \"{}\": expected http://HOST:PORT or https://HOST",
               endpoint_);
  }
  while (endpoint_.ends_with('/')) endpoint_.pop_back();
  signer_.region = options.region;
  if (!options.credentials.empty())
    signer_.credentials = read_credentials(options.credentials, options.profile);
  curl_library();  // its absence is an error now, not in a thread
}

void ObjectStore::refuse(const std::string& name, const ClientAnswer& answer, const StoreError& error) const {
  if (!answer.broken.empty())
    fail("{}: {} does not answer ({}): check --s3-endpoint and the network", name, endpoint_, answer.broken);
  if (answer.status == kPreconditionFailed)
    fail("{}: the object changed while it was read: run the command again", name);
  const char* remedy = "check --s3-endpoint and --s3-region";
  const bool bad_token = error.code == "InvalidToken" || error.code == "ExpiredToken";  // with status 400
  if (answer.status == 401 || answer.status == 403 || bad_token) {
    remedy = signer_.credentials.key_id.empty()
                 ? "name a file of keys by --s3-credentials"
                 : "check the keys in --s3-credentials, their rights and --s3-region";
  } else if (answer.status == 404) {
    remedy = "check the names of bucket and folder";
  } else if (answer.good() || answer.may_pass()) {
    remedy = "run the command again later: it goes on where it stopped";
  }
  fail("{}: {} answers with status {}{}: {}", name, endpoint_, answer.status,
       error.code.empty() ? "" : fmt::format(" ({}: {})", error.code, error.message), remedy);
}

std::string ObjectStore::address(const std::string& bucket, const std::string& key,
                                 const std::string& query) const {
  std::string url = fmt::format("{}/{}", endpoint_, bucket);
  if (!key.empty()) url += "/" + percent_encoded(key, true);
  if (!query.empty()) url += "?" + query;
  return url;
}

StoreAnswer ObjectStore::ask(const StoreRequest& request,
                             std::initializer_list<std::string_view> expected) const {
  const std::string name = request.about.empty() ? object_name(request.bucket, request.key) : request.about;
  // A request for work that takes long is answered at its begin by 200, and at its end by how it went.
  const bool answers_late = std::string_view(request.method) == "POST";
  for (int failures = 1;; ++failures) {
    std::string text;
    const ClientAnswer answer =
        send_request({.url = address(request.bucket, request.key, request.query),
                      .method = request.method,
                      .body = request.body,
                      .sink =
                          [&](const char* bytes, std::size_t size) {
                            check(text.size() + size <= kLongestText, "{}: the answer has more than {} bytes",
                                  name, kLongestText);
                            text.append(bytes, size);
                          }},
                     signer_);
    StoreError error;
    if (!answer.good() || answers_late) error = parse_store_error(answer.good() ? text : answer.text);
    if (answer.good() && error.code.empty()) return {std::move(text), answer.etag, {}};
    if (answer.broken.empty() && std::ranges::find(expected, error.code) != expected.end())
      return {{}, {}, error.code};
    if (!(answer.good() || answer.may_pass()) || failures == kMostFailures) refuse(name, answer, error);
    wait_before(failures);
  }
}

std::vector<StoredObject> ObjectStore::list(const ObjectUrl& url) const {
  const std::string name = object_name(url.bucket, url.prefix);
  std::vector<StoredObject> objects;
  std::string token;
  PagesSeen seen;
  for (;;) {
    // In the order of their names, as signatures have them.
    std::string query = token.empty() ? "" : "continuation-token=" + percent_encoded(token, false) + "&";
    query += "list-type=2&prefix=" + percent_encoded(url.prefix, false);
    ListingPage page = parse_listing(ask({.bucket = url.bucket, .query = query, .about = name}).text);
    for (StoredObject& object : page.objects) {
      check(object.key.starts_with(url.prefix), "{}: the store lists the key \"{}\", which is not there",
            name, object.key);
      objects.push_back(std::move(object));
    }
    if (page.next.empty()) return objects;
    seen.add(page.next, objects.size(), name);
    token = std::move(page.next);
  }
}

void ObjectStore::download(const std::string& bucket, const StoredObject& object, const Path& file,
                           const std::atomic<bool>* stop) const {
  const std::string name = object_name(bucket, object.key);
  GrowingFile to(file);
  for (int failures = 1; to.size() < object.size; ++failures) {
    const std::int64_t first = to.size();
    ClientRequest request{
        .url = address(bucket, object.key, ""),
        .first = first,
        .sink = [&](const char* bytes, std::size_t size) {
          check(std::cmp_less_equal(size, object.size - to.size()),
                "{}: the store sends more than the {} bytes that it lists: run the command again", name,
                object.size);
          to.write(bytes, size);
          check(stop == nullptr || !*stop, "{}: the download was stopped", name);
        }};
    if (!object.etag.empty()) request.headers.push_back("If-Match: " + object.etag);
    const ClientAnswer answer = send_request(request, signer_);
    if (to.size() > first) failures = 0;
    if (to.size() == object.size) break;
    check(!answer.good(), "{}: the store sends {} bytes and lists {}: run the command again", name, to.size(),
          object.size);
    if (!answer.may_pass() || failures == kMostFailures) refuse(name, answer, parse_store_error(answer.text));
    wait_before(failures);
  }
  to.sync();
}

std::optional<std::string> ObjectStore::read(const std::string& bucket, const std::string& key) const {
  StoreAnswer answer = ask({.bucket = bucket, .key = key}, {"NoSuchKey"});
  if (!answer.refused.empty()) return std::nullopt;
  return std::move(answer.text);
}

void ObjectStore::write(const std::string& bucket, const std::string& key, const std::string& text) const {
  ask({.method = "PUT", .bucket = bucket, .key = key, .body = body_of(text)});
}

void ObjectStore::remove(const std::string& bucket, const std::string& key) const {
  ask({.method = "DELETE", .bucket = bucket, .key = key}, {"NoSuchKey"});
}

}  // namespace hstu
