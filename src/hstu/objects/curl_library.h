// libcurl, which is loaded when an object store is used: other uses of the program need not have it.
#pragma once

#include <cstddef>

namespace hstu {

// What is used of curl/curl.h, under its names there. Numbers and types are parts of the binary interface of
// libcurl.so.4, which never changes, so that a build needs no package for them.
struct CurlHandle;
struct CurlList;
enum CurlOption : int {
  kWriteData = 10001,
  kUrl = 10002,
  kProxy = 10004,
  kRange = 10007,
  kReadData = 10009,
  kErrorBuffer = 10010,
  kWriteFunction = 20011,
  kReadFunction = 20012,
  kLowSpeedLimit = 19,
  kLowSpeedTime = 20,
  kHttpHeader = 10023,
  kHeaderData = 10029,
  kCustomRequest = 10036,
  kUpload = 46,
  kConnectTimeout = 78,
  kHeaderFunction = 20079,
  kNoSignal = 99,
  kBodyBytes = 30115,  // CURLOPT_INFILESIZE_LARGE
  kUserName = 10173,
  kPassword = 10174,
  kPermissionMilliseconds = 227,  // CURLOPT_EXPECT_100_TIMEOUT_MS
  kPathAsIs = 234,
  kAwsSigV4 = 10305,
};
inline constexpr int kResponseCode = 0x200002;  // CURLINFO_RESPONSE_CODE, a long
inline constexpr int kCurlOk = 0;
inline constexpr int kCurlBadCertificate = 60;
inline constexpr std::size_t kCurlReadAbort = 0x10000000;  // CURL_READFUNC_ABORT
inline constexpr std::size_t kCurlErrorSize = 256;

struct CurlLibrary {
  int (*global_init)(long flags);
  CurlHandle* (*easy_init)();
  int (*easy_setopt)(CurlHandle*, int option, ...);
  int (*easy_perform)(CurlHandle*);
  int (*easy_getinfo)(CurlHandle*, int info, ...);
  void (*easy_cleanup)(CurlHandle*);
  const char* (*easy_strerror)(int);
  CurlList* (*slist_append)(CurlList*, const char*);
  void (*slist_free_all)(CurlList*);
};

// Error that says how to install it, if the system does not have it.
const CurlLibrary& curl_library();

}  // namespace hstu
