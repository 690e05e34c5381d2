#include "hstu/base/mapped_ranges.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace hstu {
namespace {

// More mappings than this are not registered: their files are then not named.
constexpr std::size_t kRanges = 512;
constexpr std::size_t kPathBytes = 512;

struct Range {
  std::atomic<std::uintptr_t> begin = 0;  // 0: free
  std::atomic<std::size_t> bytes = 0;
  char path[kPathBytes] = {};
};

std::array<Range, kRanges> ranges;
std::mutex writers;

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace

void add_mapped_range(const void* begin, std::size_t bytes, const std::string& path) {
  const std::scoped_lock lock(writers);
  for (Range& range : ranges) {
    if (range.begin != 0) continue;
    std::strncpy(range.path, path.c_str(), kPathBytes - 1);
    range.bytes = bytes;
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
  for (const Range& range : ranges) {
    const std::uintptr_t begin = range.begin;
    if (begin != 0 && number(address) >= begin && number(address) - begin < range.bytes) return range.path;
  }
  return nullptr;
}

}  // namespace hstu
