#include "hstu/objects/curl_library.h"

#include <dlfcn.h>

#include "hstu/base/error.h"
#include "hstu/base/library_function.h"

namespace hstu {
namespace {

constexpr const char* kName = "libcurl.so.4";

// libparquet has symbols of an OpenSSL of its own, which libcurl's must not take for theirs. Sanitizers
// refuse the flag for that; their builds use no TLS.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnSymbolsFirst = 0;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int kOwnSymbolsFirst = 0;
#else
constexpr int kOwnSymbolsFirst = RTLD_DEEPBIND;
#endif
#else
constexpr int kOwnSymbolsFirst = RTLD_DEEPBIND;
#endif

CurlLibrary load() {
  void* const library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL | kOwnSymbolsFirst);
  check(library != nullptr,
        "libcurl, which reads object stores, cannot be loaded: install the package libcurl4 ({})",
        library == nullptr ? ::dlerror() : "");
  CurlLibrary c{};
  const auto find = [&](const char* name, auto& function) { find_function(library, kName, name, function); };
  find("curl_global_init", c.global_init);
  find("curl_easy_init", c.easy_init);
  find("curl_easy_setopt", c.easy_setopt);
  find("curl_easy_perform", c.easy_perform);
  find("curl_easy_getinfo", c.easy_getinfo);
  find("curl_easy_cleanup", c.easy_cleanup);
  find("curl_easy_strerror", c.easy_strerror);
  find("curl_slist_append", c.slist_append);
  find("curl_slist_free_all", c.slist_free_all);
  constexpr long kEverything = 3;  // CURL_GLOBAL_ALL
  check(c.global_init(kEverything) == kCurlOk, "{} cannot start", kName);
  return c;
}

}  // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary library = load();
  return library;
}

}  // namespace hstu
