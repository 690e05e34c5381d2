#include "hstu/base/checksum.h"

#include <new>

#include <fmt/format.h>
#include <xxhash.h>

namespace hstu {
namespace {

std::string to_text(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string checksum(std::span<const std::byte> bytes) {
  return to_text(XXH3_128bits(bytes.data(), bytes.size()));
}

void Checksum::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

Checksum::Checksum() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void Checksum::add(const void* bytes, std::size_t size) {
  if (size > 0) XXH3_128bits_update(state_.get(), bytes, size);
}

std::string Checksum::text() const {
  return to_text(XXH3_128bits_digest(state_.get()));
}

}  // namespace hstu
