#include "hstu/comm/group_token.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/comm/socket.h"

namespace hstu {
namespace {

class SipHash {
 public:
  explicit SipHash(const GroupToken& key)
      : v0_(key.low ^ 0x736f6d6570736575u),
        v1_(key.high ^ 0x646f72616e646f6du),
        v2_(key.low ^ 0x6c7967656e657261u),
        v3_(key.high ^ 0x7465646279746573u) {}

  void add(std::uint64_t word) {
    v3_ ^= word;
    mix(2);
    v0_ ^= word;
  }
  std::uint64_t finish() {
    v2_ ^= 0xff;
    mix(4);
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void mix(int rounds) {
    for (int r = 0; r < rounds; ++r) {
      v0_ += v1_, v1_ = std::rotl(v1_, 13) ^ v0_, v0_ = std::rotl(v0_, 32);
      v2_ += v3_, v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ += v3_, v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ += v1_, v1_ = std::rotl(v1_, 17) ^ v2_, v2_ = std::rotl(v2_, 32);
    }
  }

  std::uint64_t v0_, v1_, v2_, v3_;
};

// Of the user of this process, or of the owner of the folder, who could replace it anyway.
bool is_trusted(const struct stat& of_file, const Path& file) {
  struct stat of_folder {};
  return of_file.st_uid == ::geteuid() ||
         (::stat(file.parent_path().c_str(), &of_folder) == 0 && of_file.st_uid == of_folder.st_uid);
}

}  // namespace

GroupToken random_token() {
  GroupToken token;
  check(::getentropy(&token, sizeof token) == 0, "the system has no random numbers: {}",
        std::strerror(errno));
  return token;
}

GroupToken derived_token(const GroupToken& token, std::string_view purpose) {
  const std::string text(purpose);
  return {proof_of(token, "low " + text), proof_of(token, "high " + text)};
}

GroupToken token_of_text(std::string_view text) {
  constexpr std::size_t kLeast = 16;
  if (text.size() < kLeast)
    fail_usage("HSTU_TOKEN has {} characters: expected at least {}, which nobody can guess", text.size(),
               kLeast);
  return derived_token({}, text);
}

std::uint64_t proof_of(const GroupToken& token, std::string_view text) {
  SipHash hash(token);
  const auto length = std::uint64_t{text.size()} << 56;
  for (std::uint64_t word = 0;; text.remove_prefix(sizeof word), word = 0) {
    if (text.size() < sizeof word) {
      std::memcpy(&word, text.data(), text.size());
      hash.add(word | length);
      return hash.finish();
    }
    std::memcpy(&word, text.data(), sizeof word);
    hash.add(word);
  }
}

void write_token(const Path& file, const GroupToken& token) {
  const Path begun = Path(file) += ".partial";
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  std::filesystem::remove(begun, ignored);
  const Socket opened(::open(begun.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const bool written = opened.is_open() && ::write(opened.descriptor(), &token, sizeof token) == sizeof token;
  check(written && ::rename(begun.c_str(), file.c_str()) == 0,
        "{}: cannot be written: {}: the ranks read their token there; or set HSTU_TOKEN to a secret text for "
        "all ranks",
        file.string(), failure_reason(errno));
}

std::optional<GroupToken> read_token(const Path& file) {
  const Socket opened(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!opened.is_open() || ::fstat(opened.descriptor(), &info) != 0 || !S_ISREG(info.st_mode) ||
      !is_trusted(info, file))
    return std::nullopt;
  return token_of_descriptor(opened.descriptor());
}

int token_descriptor(const GroupToken& token) {
  const int descriptor = ::memfd_create("token", 0);
  check(descriptor >= 0 && ::write(descriptor, &token, sizeof token) == sizeof token,
        "cannot keep a token: {}", std::strerror(errno));
  return descriptor;
}

std::optional<GroupToken> token_of_descriptor(int descriptor) {
  GroupToken token;
  if (::pread(descriptor, &token, sizeof token, 0) != sizeof token) return std::nullopt;
  return token;
}

}  // namespace hstu
