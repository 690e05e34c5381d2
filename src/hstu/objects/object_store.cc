#include "hstu/objects/object_store.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/objects/curl_library.h"

namespace hstu {
namespace {

constexpr int kMostFailures = 7;  // in a row; the waits between them are 6 s together
constexpr long kOk = 200, kPartOfIt = 206, kRequestTimeout = 408, kPreconditionFailed = 412, kTooMany = 429;
constexpr long kServerError = 500;
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

struct ObjectStore::Answer {
  long status = 0;     // 0: none came
  int result = 0;      // of curl
  std::string reason;  // of curl, "" without a failure
  std::string text;    // the body of an answer that is an error

  bool good() const { return result == kCurlOk && (status == kOk || status == kPartOfIt); }
  bool may_pass() const {
    if (result == kCurlBadCertificate) return false;
    return result != kCurlOk || status == kRequestTimeout || status == kTooMany || status >= kServerError;
  }
};

namespace {

// What the callback of curl knows.
struct Receiver {
  CurlHandle* handle;
  const std::function<void(const char*, std::size_t)>& sink;
  std::int64_t skip;  // bytes of an answer that has the object from its beginning
  std::string error_text = {};
  std::exception_ptr failure = {};
};

std::size_t receive(const char* bytes, std::size_t, std::size_t size, void* to) {
  Receiver& receiver = *static_cast<Receiver*>(to);
  long status = 0;
  curl_library().easy_getinfo(receiver.handle, kResponseCode, &status);
  try {
    if (status != kOk && status != kPartOfIt) {
      constexpr std::size_t kLongestError = 1 << 16;
      receiver.error_text.append(bytes, std::min(size, kLongestError - receiver.error_text.size()));
      return size;
    }
    const auto skipped =
        status == kOk ? std::min(static_cast<std::size_t>(receiver.skip), size) : std::size_t{0};
    receiver.skip -= static_cast<std::int64_t>(skipped);
    receiver.sink(bytes + skipped, size - skipped);
    return size;
  } catch (...) {  // which must not pass through C
    receiver.failure = std::current_exception();
    return 0;
  }
}

}  // namespace

ObjectStore::ObjectStore(const StoreOptions& options) : options_(options) {
  std::string& endpoint = options_.endpoint;
  if (options_.region.empty() || options_.region.find_first_of(": /") != std::string::npos)
    fail_usage("--s3-region {}: expected the name of a region, such as eu-west-1", options_.region);
  if (endpoint.empty()) endpoint = fmt::format("https://s3.{}.amazonaws.com", options_.region);
  if (!(endpoint.starts_with("http://") || endpoint.starts_with("https://")) ||
      endpoint.find_first_of("?#@ ") != std::string::npos) {
    fail_usage("--s3-endpoint {}: expected http://HOST:PORT or https://HOST", endpoint);
  }
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (!options_.credentials.empty()) credentials_ = read_credentials(options_.credentials, options_.profile);
  curl_library();  // its absence is an error now, not in a thread
}

ObjectStore::Answer ObjectStore::send(const std::string& url, const std::vector<std::string>& headers,
                                      std::int64_t first, const Sink& sink) const {
  const CurlLibrary& curl = curl_library();
  const std::unique_ptr<CurlHandle, void (*)(CurlHandle*)> handle(curl.easy_init(), curl.easy_cleanup);
  check(handle != nullptr, "libcurl cannot start a request: is memory free?");
  const auto set = [&](CurlOption option, auto value) {
    check(curl.easy_setopt(handle.get(), option, value) == kCurlOk,
          "libcurl.so.4 does not know an option ({}): install version 7.88 or later",
          static_cast<int>(option));
  };
  constexpr long kSilentSeconds = 60, kConnectSeconds = 20;
  char reason[kCurlErrorSize] = "";
  Receiver receiver{handle.get(), sink, first};
  set(kUrl, url.c_str());
  set(kProxy, "");  // a proxy is nothing that the environment decides
  set(kNoSignal, 1L);
  set(kPathAsIs, 1L);
  set(kConnectTimeout, kConnectSeconds);
  set(kLowSpeedLimit, 1L);
  set(kLowSpeedTime, kSilentSeconds);
  set(kErrorBuffer, static_cast<char*>(reason));
  set(kWriteFunction, &receive);
  set(kWriteData, static_cast<void*>(&receiver));
  if (first > 0) set(kRange, fmt::format("{}-", first).c_str());

  std::unique_ptr<CurlList, void (*)(CurlList*)> list(nullptr, curl.slist_free_all);
  const auto add = [&](const std::string& header) {
    CurlList* const longer = curl.slist_append(list.get(), header.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    static_cast<void>(list.release());
    list.reset(longer);
  };
  for (const std::string& header : headers) add(header);
  const std::string signature = fmt::format("aws:amz:{}:s3", options_.region);
  if (!credentials_.key_id.empty()) {
    set(kAwsSigV4, signature.c_str());
    set(kUserName, credentials_.key_id.c_str());
    set(kPassword, credentials_.secret.c_str());
    add("x-amz-content-sha256: UNSIGNED-PAYLOAD");
    if (!credentials_.token.empty()) add("x-amz-security-token: " + credentials_.token);
  }
  if (list != nullptr) set(kHttpHeader, list.get());

  Answer answer;
  answer.result = curl.easy_perform(handle.get());
  if (receiver.failure) std::rethrow_exception(receiver.failure);
  curl.easy_getinfo(handle.get(), kResponseCode, &answer.status);
  if (answer.result != kCurlOk) answer.reason = reason[0] != 0 ? reason : curl.easy_strerror(answer.result);
  answer.text = std::move(receiver.error_text);
  return answer;
}

void ObjectStore::refuse(const std::string& name, const Answer& answer) const {
  if (answer.result != kCurlOk)
    fail("{}: {} does not answer ({}): check --s3-endpoint and the network", name, options_.endpoint,
         answer.reason);
  if (answer.status == kPreconditionFailed)
    fail("{}: the object changed while it was read: run the command again", name);
  const std::string code = parse_store_error(answer.text);
  const char* remedy = "check --s3-endpoint and --s3-region";
  if (answer.status == 401 || answer.status == 403) {
    remedy = credentials_.key_id.empty() ? "name a file of keys by --s3-credentials"
                                         : "check the keys in --s3-credentials, their rights and --s3-region";
  } else if (answer.status == 404) {
    remedy = "check the names of bucket and folder";
  } else if (answer.may_pass()) {
    remedy = "run the command again later: it goes on where it stopped";
  }
  fail("{}: {} answers with status {}{}: {}", name, options_.endpoint, answer.status,
       code.empty() ? "" : fmt::format(" ({})", code), remedy);
}

std::string ObjectStore::get_text(const std::string& name, const std::string& url) const {
  for (int failures = 1;; ++failures) {
    std::string text;
    const Answer answer = send(url, {}, 0, [&](const char* bytes, std::size_t size) {
      check(text.size() + size <= kLongestText, "{}: the answer has more than {} bytes", name, kLongestText);
      text.append(bytes, size);
    });
    if (answer.good()) return text;
    if (!answer.may_pass() || failures == kMostFailures) refuse(name, answer);
    wait_before(failures);
  }
}

std::vector<StoredObject> ObjectStore::list(const ObjectUrl& url) const {
  const std::string name = fmt::format("s3://{}/{}", url.bucket, url.prefix);
  std::vector<StoredObject> objects;
  std::string token;
  for (;;) {
    // In the order of their names, as signatures have them.
    std::string query = token.empty() ? "" : "continuation-token=" + percent_encoded(token, false) + "&";
    query += "list-type=2&prefix=" + percent_encoded(url.prefix, false);
    ListingPage page =
        parse_listing(get_text(name, fmt::format("{}/{}?{}", options_.endpoint, url.bucket, query)));
    for (StoredObject& object : page.objects) objects.push_back(std::move(object));
    if (page.next.empty()) return objects;
    check(page.next != token, "{}: the store's list does not end: it names the same next page twice", name);
    token = std::move(page.next);
  }
}

void ObjectStore::download(const std::string& bucket, const StoredObject& object, const Path& file) const {
  const std::string name = fmt::format("s3://{}/{}", bucket, object.key);
  const std::string url =
      fmt::format("{}/{}/{}", options_.endpoint, bucket, percent_encoded(object.key, true));
  std::vector<std::string> headers;
  if (!object.etag.empty()) headers.push_back("If-Match: " + object.etag);
  GrowingFile to(file);
  for (int failures = 1; to.size() < object.size; ++failures) {
    const std::int64_t first = to.size();
    const Answer answer = send(url, headers, first, [&](const char* bytes, std::size_t size) {
      check(std::cmp_less_equal(size, object.size - to.size()),
            "{}: the store sends more than the {} bytes that it lists: run the command again", name,
            object.size);
      to.write(bytes, size);
    });
    if (to.size() > first) failures = 0;
    if (to.size() == object.size) break;
    check(!answer.good(), "{}: the store sends {} bytes and lists {}: run the command again", name, to.size(),
          object.size);
    if (!answer.may_pass() || failures == kMostFailures) refuse(name, answer);
    wait_before(failures);
  }
  to.sync();
}

}  // namespace hstu
