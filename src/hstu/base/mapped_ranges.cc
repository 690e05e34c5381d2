#include "hstu/base/mapped_ranges.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

// More mappings than this are not registered: their files are then not named.
constexpr std::size_t kRanges = 8192;
constexpr std::size_t kPathBytes = 512;

struct Range {
  std::atomic<std::uintptr_t> begin = 0;  // 0: free
  std::atomic<std::size_t> bytes = 0;
  std::atomic<bool> is_lost = false;  // a part of it
  char path[kPathBytes] = {};
};

std::array<Range, kRanges> ranges;
std::mutex writers;
std::atomic<bool> survives = false;
std::atomic<std::int64_t> pages_lost = 0;

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

Range* range_at(const void* address) {
  for (Range& range : ranges) {
    const std::uintptr_t begin = range.begin;
    if (begin != 0 && number(address) >= begin && number(address) - begin < range.bytes) return &range;
  }
  return nullptr;
}

bool is_under(const std::string& folder, const Range& range) {
  return std::strncmp(range.path, folder.c_str(), folder.size()) == 0 && range.path[folder.size()] == '/';
}

}  // namespace

void add_mapped_range(const void* begin, std::size_t bytes, const std::string& path) {
  const std::scoped_lock lock(writers);
  for (Range& range : ranges) {
    if (range.begin != 0) continue;
    std::strncpy(range.path, path.c_str(), kPathBytes - 1);
    range.bytes = bytes;
    range.is_lost = false;
    range.begin = number(begin);  // last: a handler that sees it sees the rest
    return;
  }
}

void remove_mapped_range(const void* begin) {
  const std::scoped_lock lock(writers);
  for (Range& range : ranges) {
    if (range.begin == number(begin)) range.begin = 0;
  }
}

const char* mapped_file_at(const void* address) {
  const Range* const range = range_at(address);
  return range == nullptr ? nullptr : range->path;
}

void survive_lost_pages() {
  survives = true;
}

bool replace_lost_page(const void* address) {
  Range* const range = range_at(address);
  if (!survives || range == nullptr) return false;
  const int error = errno;
  const auto size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto* const page = reinterpret_cast<void*>(number(address) / size * size);
  const bool replaced =
      ::mmap(page, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  range->is_lost = true;
  ++pages_lost;
  errno = error;
  return replaced;
}

std::int64_t lost_pages() {
  return pages_lost;
}

std::string lost_file(const std::string& folder) {
  const std::scoped_lock lock(writers);
  for (const Range& range : ranges)
    if (range.begin != 0 && range.is_lost && is_under(folder, range)) return range.path;
  return {};
}

void keep_in_memory(const std::string& folder, const std::function<bool(const std::string&)>& is_kept) {
  const std::scoped_lock lock(writers);
  for (Range& range : ranges) {
    if (range.begin == 0 || !is_under(folder, range) || !is_kept(range.path)) continue;
    auto* const begin = reinterpret_cast<void*>(range.begin.load());
    void* const copy =
        ::mmap(nullptr, range.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(copy != MAP_FAILED, "{}: no memory for its {} bytes", range.path, range.bytes.load());
    std::memcpy(copy, begin, range.bytes);
    ::mprotect(copy, range.bytes, PROT_READ);
    const bool moved =
        ::mremap(copy, range.bytes, range.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, begin) != MAP_FAILED;
    if (!moved) ::munmap(copy, range.bytes);
    check(moved, "{}: its copy cannot be mapped: {}", range.path, std::strerror(errno));
    range.begin = 0;
  }
}

}  // namespace hstu
