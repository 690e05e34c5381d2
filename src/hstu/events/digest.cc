#include "hstu/events/digest.h"

#include <array>
#include <fstream>
#include <memory>
#include <vector>

#include <openssl/evp.h>

#include "hstu/base/error.h"
#include "hstu/base/progress.h"

namespace hstu {

std::string file_digest(const Path& path, Digest digest) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  const EVP_MD* const kind = digest == Digest::kSha256 ? EVP_sha256() : EVP_md5();
  require(context && EVP_DigestInit_ex(context.get(), kind, nullptr) == 1,
          "OpenSSL does not support the digest");
  check_input_file(path);
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), "cannot open {}", path.string());
  Progress progress("reading " + path.filename().string(),
                    static_cast<std::int64_t>(std::filesystem::file_size(path)), "bytes");
  std::vector<char> block(std::size_t{1} << 20);
  std::int64_t done = 0;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
    EVP_DigestUpdate(context.get(), block.data(), static_cast<std::size_t>(file.gcount()));
    progress.advance_to(done += file.gcount());
  }
  check(!file.bad(), "cannot read {}", path.string());
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), bytes.data(), &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace hstu
