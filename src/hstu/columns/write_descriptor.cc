#include "hstu/columns/write_descriptor.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "hstu/base/error.h"

namespace hstu {

bool write_to(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE) return false;
    check(n >= 0, "cannot write standard output: {}", std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace hstu
