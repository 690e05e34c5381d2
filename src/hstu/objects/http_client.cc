#include "hstu/objects/http_client.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <strings.h>

#include "hstu/base/error.h"
#include "hstu/base/foreign_text.h"
#include "hstu/objects/curl_library.h"

namespace hstu {
namespace {

constexpr long kOk = 200, kMultipleChoices = 300, kPartOfIt = 206;
constexpr long kRequestTimeout = 408, kTooMany = 429, kServerError = 500;

bool is_good(long status) {
  return status >= kOk && status < kMultipleChoices;
}

// What the callbacks of curl know. An exception must not pass through C.
struct Transfer {
  CurlHandle* handle;
  const ClientRequest& request;
  std::int64_t skip;  // bytes of an answer that has the object from its beginning
  std::int64_t sent = 0;
  std::string error_text = {}, etag = {};
  std::exception_ptr failure = {};
};

std::size_t receive(const char* bytes, std::size_t, std::size_t size, void* to) {
  Transfer& transfer = *static_cast<Transfer*>(to);
  long status = 0;
  curl_library().easy_getinfo(transfer.handle, kResponseCode, &status);
  try {
    if (!is_good(status)) {
      constexpr std::size_t kLongestError = 1 << 16;
      transfer.error_text.append(bytes, std::min(size, kLongestError - transfer.error_text.size()));
      return size;
    }
    const auto skipped =
        status == kPartOfIt ? std::size_t{0} : std::min(static_cast<std::size_t>(transfer.skip), size);
    transfer.skip -= static_cast<std::int64_t>(skipped);
    transfer.request.sink(bytes + skipped, size - skipped);
    return size;
  } catch (...) {
    transfer.failure = std::current_exception();
    return 0;
  }
}

std::size_t provide(char* to, std::size_t, std::size_t size, void* from) {
  Transfer& transfer = *static_cast<Transfer*>(from);
  const ClientBody& body = transfer.request.body;
  const auto most = std::min(static_cast<std::int64_t>(size), body.bytes - transfer.sent);
  if (most == 0) return 0;
  try {
    const std::size_t read = body.read(transfer.sent, to, static_cast<std::size_t>(most));
    transfer.sent += static_cast<std::int64_t>(read);
    return read;
  } catch (...) {
    transfer.failure = std::current_exception();
    return kCurlReadAbort;
  }
}

std::size_t receive_header(const char* bytes, std::size_t, std::size_t size, void* to) {
  constexpr std::string_view kEtag = "etag:", kBlanks = " \t\r\n";
  std::string_view line(bytes, size);
  if (line.size() > kEtag.size() && strncasecmp(bytes, kEtag.data(), kEtag.size()) == 0) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks, kEtag.size()), line.size()));
    static_cast<Transfer*>(to)->etag = line.substr(0, line.find_last_not_of(kBlanks) + 1);
  }
  return size;
}

class HeaderList {
 public:
  void add(const std::string& header) {
    check(is_one_line(header), "a header of a request to the store is not {}: \"{}\"", kOneLine, header);
    CurlList* const longer = curl_library().slist_append(list_.get(), header.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    static_cast<void>(list_.release());
    list_.reset(longer);
  }
  CurlList* get() const { return list_.get(); }

 private:
  std::unique_ptr<CurlList, void (*)(CurlList*)> list_{nullptr, curl_library().slist_free_all};
};

}  // namespace

bool ClientAnswer::good() const {
  return broken.empty() && is_good(status);
}

bool ClientAnswer::may_pass() const {
  if (untrusted) return false;
  return !broken.empty() || status == kRequestTimeout || status == kTooMany || status >= kServerError;
}

ClientAnswer send_request(const ClientRequest& request, const ClientSigner& signer) {
  const CurlLibrary& curl = curl_library();
  const std::unique_ptr<CurlHandle, void (*)(CurlHandle*)> handle(curl.easy_init(), curl.easy_cleanup);
  check(handle != nullptr, "libcurl cannot start a request: is memory free?");
  const auto set = [&](CurlOption option, auto value) {
    check(curl.easy_setopt(handle.get(), option, value) == kCurlOk,
          "libcurl.so.4 does not know an option ({}): install version 7.88 or later",
          static_cast<int>(option));
  };
  constexpr long kSilentSeconds = 60, kConnectSeconds = 20;
  constexpr std::size_t kLongestUrl = 1 << 16;
  check(request.url.size() <= kLongestUrl,
        "a request to the store would have an address of {} bytes: a text of the store is too long: {}...",
        request.url.size(), request.url.substr(0, 200));
  char reason[kCurlErrorSize] = "";
  Transfer transfer{handle.get(), request, request.first};
  set(kUrl, request.url.c_str());
  set(kProxy, "");  // a proxy is nothing that the environment decides
  set(kNoSignal, 1L);
  set(kPathAsIs, 1L);
  set(kConnectTimeout, kConnectSeconds);
  set(kLowSpeedLimit, 1L);
  set(kLowSpeedTime, kSilentSeconds);
  set(kErrorBuffer, static_cast<char*>(reason));
  set(kWriteFunction, &receive);
  set(kWriteData, static_cast<void*>(&transfer));
  set(kHeaderFunction, &receive_header);
  set(kHeaderData, static_cast<void*>(&transfer));
  if (request.first > 0) set(kRange, fmt::format("{}-", request.first).c_str());

  HeaderList headers;
  for (const std::string& header : request.headers) headers.add(header);
  const std::string_view method = request.method;
  if (method != "GET") set(kCustomRequest, request.method);
  if (method == "PUT" || method == "POST") {
    set(kUpload, 1L);
    set(kBodyBytes, static_cast<long long>(request.body.bytes));
    set(kReadFunction, &provide);
    set(kReadData, static_cast<void*>(&transfer));
    set(kPermissionMilliseconds,
        100L);  // a store that refuses a body says so before it comes; some say nothing
  }
  const std::string signature = fmt::format("aws:amz:{}:s3", signer.region);
  if (!signer.credentials.key_id.empty()) {
    set(kAwsSigV4, signature.c_str());
    set(kUserName, signer.credentials.key_id.c_str());
    set(kPassword, signer.credentials.secret.c_str());
    headers.add("x-amz-content-sha256: UNSIGNED-PAYLOAD");
    if (!signer.credentials.token.empty()) headers.add("x-amz-security-token: " + signer.credentials.token);
  }
  if (headers.get() != nullptr) set(kHttpHeader, headers.get());

  ClientAnswer answer;
  const int result = curl.easy_perform(handle.get());
  if (transfer.failure) std::rethrow_exception(transfer.failure);
  curl.easy_getinfo(handle.get(), kResponseCode, &answer.status);
  if (result != kCurlOk) answer.broken = reason[0] != 0 ? reason : curl.easy_strerror(result);
  answer.untrusted = result == kCurlBadCertificate;
  check(is_one_line(transfer.etag), "the store names the ETag \"{}\", expected {}", transfer.etag, kOneLine);
  answer.etag = std::move(transfer.etag);
  answer.text = std::move(transfer.error_text);
  return answer;
}

ClientBody body_of(const std::string& text) {
  return {static_cast<std::int64_t>(text.size()), [&text](std::int64_t offset, char* to, std::size_t size) {
            return text.copy(to, size, static_cast<std::size_t>(offset));
          }};
}

}  // namespace hstu
