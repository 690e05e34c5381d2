// XXH3-128 checksums, as 32 hexadecimal digits: of one range of bytes, or of bytes that arrive in pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace hstu {

std::string checksum(std::span<const std::byte> bytes);
inline std::string checksum(std::string_view text) {
  return checksum(std::as_bytes(std::span(text)));
}

// The checksum of all pieces in the order they were added; it does not depend on how they were divided.
class Checksum {
 public:
  Checksum();
  void add(const void* bytes, std::size_t size);
  std::string text() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace hstu
