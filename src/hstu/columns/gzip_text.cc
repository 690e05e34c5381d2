#include "hstu/columns/gzip_text.h"

#include <memory>

#include <arrow/buffer.h>
#include <arrow/io/compressed.h>
#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/util/compression.h>

#include "hstu/base/error.h"
#include "hstu/columns/write_descriptor.h"

namespace hstu {
namespace {

constexpr std::int64_t kUnpackedBytes = std::int64_t{1} << 18;

template <typename T>
T unpacked(arrow::Result<T> result, const Path& file) {
  check(result.ok(), "{} cannot be unpacked: it is truncated or damaged", file.string());
  return std::move(result).ValueUnsafe();
}

}  // namespace

bool begins_as_gzip(const Path& file) {
  const MappedFile mapped(file);
  const auto bytes = mapped.bytes();
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

void write_unpacked(const Path& file, int descriptor) {
  arrow::MemoryPool* const pool = arrow::system_memory_pool();
  const auto packed = unpacked(arrow::io::ReadableFile::Open(file.string(), pool), file);
  const auto codec = unpacked(arrow::util::Codec::Create(arrow::Compression::GZIP), file);
  const auto input = unpacked(arrow::io::CompressedInputStream::Make(codec.get(), packed, pool), file);
  while (true) {
    const std::shared_ptr<arrow::Buffer> block = unpacked(input->Read(kUnpackedBytes), file);
    if (block->size() == 0) return;
    if (!write_to(descriptor, std::string_view(*block))) return;  // the reader has ended
  }
}

}  // namespace hstu
