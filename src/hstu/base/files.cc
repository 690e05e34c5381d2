#include "hstu/base/files.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/folders.h"
#include "hstu/base/mapped_ranges.h"
#include "hstu/base/staged_file.h"
#include "hstu/base/terminal.h"

namespace hstu {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

[[noreturn]] void fail_write(const Path& path, int error) {
  const std::string text = fmt::format("cannot write {}: {}", path.string(), failure_reason(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) throw DiskFullError(text);
  throw Error(text);
}

int open_or_throw(const Path& path, int flags, const char* purpose) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (descriptor < 0) fail("cannot {} {}: {}", purpose, path.string(), failure_reason(errno));
  return descriptor;
}

// Opens a file for reading; `info` becomes its properties. O_NONBLOCK: a pipe without a writer must not
// block.
int open_input(const Path& path, struct stat* info) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored) && !std::filesystem::exists(path, ignored))
    fail(
        "cannot open {}: it is a link to {}, which does not exist: the data may have been moved; move them "
        "back, or "
        "make the link again",
        path.string(), std::filesystem::read_symlink(path, ignored).string());
  const int descriptor = open_or_throw(path, O_RDONLY | O_NONBLOCK, "open");
  const bool known = ::fstat(descriptor, info) == 0;
  if (known && S_ISREG(info->st_mode)) return descriptor;
  const int error = errno;
  ::close(descriptor);
  if (!known) fail("cannot read {}: {}", path.string(), failure_reason(error));
  fail("cannot read {}: it is a {}; write its content to a file first", path.string(),
       S_ISDIR(info->st_mode)    ? "folder"
       : S_ISFIFO(info->st_mode) ? "pipe"
                                 : "device");
}

// The staged folders of this program.
struct StagedFolders {
  std::mutex mutex;
  std::set<Path> folders;
  bool stopped = false, committed = false;
};
StagedFolders& at_work() {
  static StagedFolders instance;
  return instance;
}

// "DIR/" and "DIR" are the same place; a trailing slash would put the staging folder inside it.
Path without_trailing_slash(const Path& path) {
  return path.filename().empty() ? path.parent_path() : path;
}

}  // namespace

std::string failure_reason(int error) {
  std::string text = std::strerror(error);
  if (error == ENOSPC) text += ": free some space or choose another folder";
  if (error == EDQUOT) text += ": free some of your quota or choose another folder";
  if (error == EFBIG) text += ": raise the limit on file sizes (ulimit -f) or choose another disk";
  if (error == EACCES || error == EROFS) text += ": check the permissions";
  return text;
}

void sync_folder(const Path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // Some file systems do not let folders be opened; the rename itself is atomic.
  ::fsync(descriptor);
  ::close(descriptor);
}

void rename_and_sync(const Path& from, const Path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error) fail("cannot rename {} to {}: {}", from.string(), to.string(), error.message());
  sync_folder(to.parent_path());
}

void sync_file(const Path& path) {
  const int descriptor = open_or_throw(path, O_RDONLY, "open");
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  if (result != 0) fail_write(path, error);
}

void create_and_sync(const Path& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return;
  if (folder.has_parent_path()) create_and_sync(folder.parent_path());
  std::filesystem::create_directory(folder, error);
  if (error) fail("cannot create the folder {}: {}", folder.string(), error.message());
  sync_folder(folder.parent_path());
}

bool all_folders_committed() {
  const std::scoped_lock lock(at_work().mutex);
  return at_work().committed && at_work().folders.empty();
}

void check_output_file(const Path& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  using Kind = std::filesystem::file_type;
  if (kind == Kind::regular || kind == Kind::not_found || kind == Kind::none) return;
  fail("cannot write {}: it is a {}", path.string(),
       kind == Kind::directory ? "folder"
       : kind == Kind::fifo    ? "pipe"
                               : "device");
}

void check_input_file(const Path& path) {
  struct stat info {};
  ::close(open_input(path, &info));
}

std::string read_file(const Path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_file(const Path& path, std::string_view bytes) {
  StagedFile staged(path, StagedFile::Existing::replace);
  OutputFile file(staged.temporary());
  file.write(bytes);
  file.close();
  staged.commit();
}

void check_writable(const Path& path) {
  check_output_file(path);
  // A name of its own: PATH.partial may be of another program that is writing it.
  const Path temporary = fmt::format("{}.{}.partial", path.string(), ::getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) fail("cannot write {}: {}", path.string(), failure_reason(errno));
  ::close(descriptor);
  ::unlink(temporary.c_str());
}

std::string file_checksum(const Path& path) {
  // In blocks: a mapped file would count as memory of this process.
  struct stat info {};
  const int descriptor = open_input(path, &info);
  Checksum checksum;
  std::string block(kBufferBytes, '\0');
  ssize_t size = 0;
  while ((size = ::read(descriptor, block.data(), block.size())) > 0 || (size < 0 && errno == EINTR)) {
    if (size > 0) checksum.add(block.data(), static_cast<std::size_t>(size));
  }
  const int error = errno;
  ::close(descriptor);
  if (size < 0) fail("cannot read {}: {}", path.string(), failure_reason(error));
  return checksum.text();
}

// `write(bytes, size, done)` is a system call that writes some of the bytes, starting after the first `done`.
template <typename Write>
static void write_all(const Path& path, const void* bytes, std::size_t size, const Write& write) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t written = write(static_cast<const char*>(bytes) + done, size - done, done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_write(path, errno);
    done += static_cast<std::size_t>(written);
  }
}

// Writes at the end of the file; or at `offset`.
static void append_all(const Path& path, int descriptor, const void* bytes, std::size_t size) {
  write_all(path, bytes, size,
            [&](const char* from, std::size_t n, std::size_t) { return ::write(descriptor, from, n); });
}
static void place_all(const Path& path, int descriptor, std::uint64_t offset, const void* bytes,
                      std::size_t size) {
  write_all(path, bytes, size, [&](const char* from, std::size_t n, std::size_t done) {
    return ::pwrite(descriptor, from, n, static_cast<off_t>(offset + done));
  });
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
  append_all(path_, descriptor_, bytes, size);
}

void OutputFile::flush() {
  append_all(path_, descriptor_, buffer_.data(), buffer_.size());
  buffer_.clear();
}

void OutputFile::overwrite(std::uint64_t offset, const void* bytes, std::size_t size) {
  flush();
  place_all(path_, descriptor_, offset, bytes, size);
}

void OutputFile::close() {
  flush();
  const bool synced =
      ::fsync(descriptor_) == 0 || errno == EINVAL;  // EINVAL: a pipe or device, nothing to sync.
  const int sync_error = errno;
  const bool closed = ::close(std::exchange(descriptor_, -1)) == 0;
  if (!synced) fail_write(path_, sync_error);
  if (!closed) fail("cannot close {}: {}", path_.string(), failure_reason(errno));
}

PlacedFile::PlacedFile(Path path, std::uint64_t size) : path_(std::move(path)) {
  descriptor_ = open_or_throw(path_, O_WRONLY | O_CREAT | O_TRUNC, "create");
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) == 0) return;
  const int error = errno;
  ::close(std::exchange(descriptor_, -1));
  fail("cannot set the size of {} to {} bytes: {}", path_.string(), size, failure_reason(error));
}

PlacedFile::~PlacedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PlacedFile::write_at(std::uint64_t offset, const void* bytes, std::size_t size) {
  place_all(path_, descriptor_, offset, bytes, size);
}

void PlacedFile::close() {
  const bool synced = ::fsync(descriptor_) == 0;
  const int error = errno;
  const bool closed = ::close(std::exchange(descriptor_, -1)) == 0;
  if (!synced || !closed) fail_write(path_, synced ? errno : error);
}

MappedFile::MappedFile(const Path& path) {
  struct stat info {};
  const int descriptor = open_input(path, &info);
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ > 0) {
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
    const int error = errno;
    ::close(descriptor);
    if (address == MAP_FAILED) fail("cannot map {}: {}", path.string(), failure_reason(error));
    data_ = static_cast<const std::byte*>(address);
    add_mapped_range(data_, size_, path.string());
  } else {
    ::close(descriptor);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  remove_mapped_range(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);  // NOLINT: munmap takes a void*.
}

void release_mapped(const void* begin, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t aligned = first / page * page;
  ::madvise(reinterpret_cast<void*>(aligned), bytes + (first - aligned), MADV_DONTNEED);
}

StagedFolder::StagedFolder(const Path& final_path) : final_(without_trailing_slash(final_path)) {
  if (std::filesystem::exists(std::filesystem::symlink_status(final_))) {
    fail_usage("the output folder {} already exists: choose another name or remove it first",
               final_.string());
  }
  staging_ = final_.string() + ".partial";
  std::error_code error;
  if (std::filesystem::exists(staging_)) {
    lock_staging();
    print_note("removing {}, the unfinished output of an interrupted run\n", staging_.string());
    std::filesystem::remove_all(staging_, error);
    ::close(std::exchange(lock_, -1));
  }
  // A program that ends at this moment either sees the folder in the set or prevents it.
  const std::scoped_lock lock(at_work().mutex);
  check(!at_work().stopped, "{} is not created: the program is ending", final_.string());
  create_and_sync(staging_);
  lock_staging();
  at_work().folders.insert(staging_);
}

void StagedFolder::lock_staging() {
  lock_ = ::open(staging_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A process that was just killed holds its lock until the system has released its memory.
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::close(std::exchange(lock_, -1));
  fail_usage("another program is writing {}: wait for it or choose another name", final_.string());
}

StagedFolder::~StagedFolder() {
  if (lock_ >= 0) ::close(lock_);
  if (committed_) return;
  std::error_code ignored;
  std::filesystem::remove_all(staging_, ignored);
  const std::scoped_lock lock(at_work().mutex);
  at_work().folders.erase(staging_);
}

void StagedFolder::commit() {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(staging_)) {
    if (entry.is_directory()) sync_folder(entry.path());
    if (entry.is_regular_file()) sync_file(entry.path());
  }
  sync_folder(staging_);
  const std::scoped_lock lock(at_work().mutex);
  check(!at_work().stopped, "{} is not committed: the program is ending", final_.string());
  rename_and_sync(staging_, final_);
  committed_ = at_work().committed = true;
  at_work().folders.erase(staging_);
}

void StagedFolder::remove_all_at_work() {
  const std::scoped_lock lock(at_work().mutex);
  at_work().stopped = true;
  for (const Path& folder : at_work().folders) {
    // A thread that is still writing may add a file while the folder is being emptied.
    constexpr int kAttempts = 100;
    std::error_code error;
    for (int i = 0; i < kAttempts && std::filesystem::exists(folder, error); ++i) {
      std::filesystem::remove_all(folder, error);
    }
  }
}

}  // namespace hstu
