#include "hstu/base/files.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// What a failed system call means and what to do about it.
std::string reason(int error) {
  std::string text = std::strerror(error);
  if (error == ENOSPC) text += ": free some space or choose another folder";
  if (error == EDQUOT) text += ": free some of your quota or choose another folder";
  if (error == EFBIG) text += ": raise the limit on file sizes (ulimit -f) or choose another disk";
  if (error == EACCES || error == EROFS) text += ": check the permissions";
  return text;
}

int open_or_throw(const Path& path, int flags, const char* purpose) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (descriptor < 0) fail("cannot {} {}: {}", purpose, path.string(), reason(errno));
  return descriptor;
}

void sync_folder(const Path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // Some file systems do not let folders be opened; the rename itself is atomic.
  ::fsync(descriptor);
  ::close(descriptor);
}

void rename_or_throw(const Path& from, const Path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error) fail("cannot rename {} to {}: {}", from.string(), to.string(), error.message());
  sync_folder(to.parent_path());
}

// "DIR/" and "DIR" are the same place; a trailing slash would put the staging folder inside it.
Path without_trailing_slash(const Path& path) {
  return path.filename().empty() ? path.parent_path() : path;
}

}  // namespace

std::string read_file(const Path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_file(const Path& path, std::string_view bytes) {
  const Path temporary = path.string() + ".partial";
  OutputFile file(temporary);
  file.write(bytes);
  file.close();
  rename_or_throw(temporary, path);
}

std::string file_checksum(const Path& path) {
  const MappedFile file(path);
  return checksum(file.bytes());
}

OutputFile::OutputFile(Path path) : path_(std::move(path)) {
  descriptor_ = open_or_throw(path_, O_WRONLY | O_CREAT | O_TRUNC, "create");
  buffer_.reserve(kBufferBytes);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::write(const void* bytes, std::size_t size) {
  size_ += size;
  if (buffer_.size() + size > kBufferBytes) flush();
  if (size < kBufferBytes) {
    buffer_.append(static_cast<const char*>(bytes), size);
    return;
  }
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write {}: {}", path_.string(), reason(errno));
    next += written;
    size -= static_cast<std::size_t>(written);
  }
}

void OutputFile::flush() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write {}: {}", path_.string(), reason(errno));
    done += static_cast<std::size_t>(written);
  }
  buffer_.clear();
}

void OutputFile::overwrite(std::uint64_t offset, const void* bytes, std::size_t size) {
  flush();
  const ssize_t written = ::pwrite(descriptor_, bytes, size, static_cast<off_t>(offset));
  if (written != static_cast<ssize_t>(size)) fail("cannot write {}: {}", path_.string(), reason(errno));
}

void OutputFile::close() {
  flush();
  const bool synced =
      ::fsync(descriptor_) == 0 || errno == EINVAL;  // EINVAL: a pipe or device, nothing to sync.
  const int sync_error = errno;
  const bool closed = ::close(std::exchange(descriptor_, -1)) == 0;
  if (!synced) fail("cannot write {}: {}", path_.string(), reason(sync_error));
  if (!closed) fail("cannot close {}: {}", path_.string(), reason(errno));
}

PlacedFile::PlacedFile(Path path, std::uint64_t size) : path_(std::move(path)) {
  descriptor_ = open_or_throw(path_, O_WRONLY | O_CREAT | O_TRUNC, "create");
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) == 0) return;
  const int error = errno;
  ::close(std::exchange(descriptor_, -1));
  fail("cannot make {} {} bytes long: {}", path_.string(), size, reason(error));
}

PlacedFile::~PlacedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PlacedFile::write_at(std::uint64_t offset, const void* bytes, std::size_t size) {
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::pwrite(descriptor_, next, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write {}: {}", path_.string(), reason(errno));
    next += written;
    offset += static_cast<std::uint64_t>(written);
    size -= static_cast<std::size_t>(written);
  }
}

void PlacedFile::close() {
  const bool synced = ::fsync(descriptor_) == 0;
  const int error = errno;
  const bool closed = ::close(std::exchange(descriptor_, -1)) == 0;
  if (!synced || !closed) fail("cannot write {}: {}", path_.string(), reason(synced ? errno : error));
}

MappedFile::MappedFile(const Path& path) {
  const int descriptor = open_or_throw(path, O_RDONLY, "open");
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || S_ISDIR(info.st_mode)) {
    ::close(descriptor);
    fail("cannot read {}: {}", path.string(), S_ISDIR(info.st_mode) ? "it is a folder" : reason(errno));
  }
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ > 0) {
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
    const int error = errno;
    ::close(descriptor);
    if (address == MAP_FAILED) fail("cannot map {}: {}", path.string(), reason(error));
    data_ = static_cast<const std::byte*>(address);
  } else {
    ::close(descriptor);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);  // NOLINT: munmap takes a void*.
}

StagedFolder::StagedFolder(Path final_path) : final_(without_trailing_slash(final_path)) {
  if (std::filesystem::exists(std::filesystem::symlink_status(final_))) {
    fail_usage("the output folder {} exists already: choose another name or remove it first",
               final_.string());
  }
  staging_ = final_.string() + ".partial";
  std::error_code error;
  std::filesystem::remove_all(staging_, error);  // What an interrupted run left behind.
  std::filesystem::create_directories(staging_, error);
  if (error) fail("cannot create the folder {}: {}", staging_.string(), error.message());
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!committed_) std::filesystem::remove_all(staging_, ignored);
}

void StagedFolder::commit() {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(staging_)) {
    if (entry.is_directory()) sync_folder(entry.path());
    if (!entry.is_regular_file()) continue;
    const int descriptor = open_or_throw(entry.path(), O_RDONLY, "open");
    const int result = ::fsync(descriptor);
    const int error = errno;
    ::close(descriptor);
    if (result != 0) fail("cannot write {}: {}", entry.path().string(), reason(error));
  }
  sync_folder(staging_);
  rename_or_throw(staging_, final_);
  committed_ = true;
}

}  // namespace hstu
