#include "hstu/base/mapped_space.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/base/mapped_ranges.h"

namespace hstu {
namespace {

std::string system_reason(int error) {
  return std::generic_category().message(error);
}

}  // namespace

MappedSpace::MappedSpace(std::size_t bytes, std::size_t header) : bytes_(bytes), header_(header) {
  require(header < static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), "a header of {} bytes", header);
  void* const address =
      ::mmap(nullptr, bytes + header, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    fail("cannot reserve {} bytes of addresses: {}", bytes + header, system_reason(errno));
  begin_ = static_cast<std::byte*>(address);
}

MappedSpace::~MappedSpace() {
  for (const std::byte* file : files_) remove_mapped_range(file);
  ::munmap(begin_, bytes_ + header_);
}

void MappedSpace::map(const Path& file, std::size_t at) {
  require(at % kAlignment == 0, "a file at {} of an array", at);
  const std::size_t size = std::filesystem::file_size(file);
  require(at + size <= bytes_ + header_, "{} bytes at {} of an array of {}", size, at, bytes_);
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail("cannot open {}: {}", file.string(), system_reason(errno));
  void* const address = ::mmap(begin_ + at, size, PROT_READ, MAP_SHARED | MAP_FIXED, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (address == MAP_FAILED) fail("cannot map {}: {}", file.string(), system_reason(error));
  files_.push_back(begin_ + at);
  add_mapped_range(begin_ + at, size, file.string());
}

MemoryFile::MemoryFile(std::size_t bytes) : bytes_(bytes) {
  const int descriptor = ::memfd_create("hstu", MFD_CLOEXEC);
  const bool sized = descriptor >= 0 && ::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0;
  void* const address =
      sized ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) : MAP_FAILED;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (address == MAP_FAILED) fail("cannot take {} bytes of memory: {}", bytes, system_reason(error));
  begin_ = static_cast<std::byte*>(address);
}

MemoryFile::~MemoryFile() {
  ::munmap(begin_, bytes_);
}

}  // namespace hstu
