// One range of addresses that several files share: an array that continues from file to file.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

// Files and gaps, mapped read-only. Gaps read as zeros and take no memory.
class MappedSpace {
 public:
  // Where a file's elements begin in the array must be a multiple of this, in bytes: pages of every machine.
  static constexpr std::size_t kAlignment = std::size_t{1} << 16;

  // An array of `bytes`. The elements of every file begin at `header` bytes of it, less than a page.
  MappedSpace(std::size_t bytes, std::size_t header);
  ~MappedSpace();
  MappedSpace(const MappedSpace&) = delete;
  MappedSpace& operator=(const MappedSpace&) = delete;

  // Puts the elements of a file at [at, ...) of the array. The `header` bytes before `at` are overwritten.
  void map(const Path& file, std::size_t at);
  std::span<const std::byte> bytes() const { return {begin_ + header_, bytes_}; }

 private:
  std::byte* begin_ = nullptr;  // of the reserved addresses
  std::size_t bytes_, header_;
  std::vector<const std::byte*> files_;
};

// Memory that release_mapped() may be called for, unlike that of vectors: it has a file, without a name.
class MemoryFile {
 public:
  explicit MemoryFile(std::size_t bytes);  // zeros
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::span<std::byte> bytes() const { return {begin_, bytes_}; }

 private:
  std::byte* begin_ = nullptr;
  std::size_t bytes_;
};

}  // namespace hstu
