#include "hstu/rows/row_storage.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

constexpr std::int64_t kAlignment = 64;

}  // namespace

RowStorage::RowStorage(std::int64_t width, std::int64_t chunk_bytes)
    : width_(width), shift_(chunk_shift(width, chunk_bytes)), mask_((std::int64_t{1} << shift_) - 1) {
  require(width >= 0, "expected a width >= 0, found {}", width);
}

RowStorage::RowStorage(std::int64_t width, std::pmr::memory_resource* memory, std::int64_t chunk_bytes,
                       std::int64_t most_rows)
    : width_(width),
      memory_(memory),
      shift_(chunk_shift(width, chunk_bytes)),
      mask_((std::int64_t{1} << shift_) - 1),
      most_(chunk_of(most_rows + mask_)) {}

std::int64_t RowStorage::chunk_bytes() const {
  const std::int64_t bytes = (width_ << shift_) * static_cast<std::int64_t>(sizeof(float));
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::future<RowStorage::Chunks> RowStorage::more_chunks(std::size_t n, std::launch when) const {
  const auto bytes = static_cast<std::size_t>(chunk_bytes());
  return std::async(when, [n, bytes, when, memory = memory_] {
    Chunks chunks;
    try {
      while (chunks.size() < n)
        chunks.emplace_back(static_cast<float*>(memory->allocate(bytes)), FreeChunk{memory, bytes});
    } catch (const std::exception&) {  // fewer; who needs the others asks again
      if (chunks.empty() && when == std::launch::deferred) throw;
    }
    return chunks;
  });
}

void RowStorage::grow_from_memory(std::size_t needed) {
  if (needed > needed_) growth_ = needed - std::exchange(needed_, needed);
  while (chunks_.size() < needed_) {
    if (!ahead_.valid()) ahead_ = more_chunks(needed_ - chunks_.size(), std::launch::deferred);
    Chunks more;
    try {
      more = ahead_.get();
    } catch (const std::exception& error) {
      fail_memory(error.what());
    }
    std::move(more.begin(), more.end(), std::back_inserter(chunks_));
  }
  const std::size_t ahead = std::min(needed_ + growth_, most_);
  if (!ahead_.valid() && chunks_.size() < ahead)
    ahead_ = more_chunks(ahead - chunks_.size(), std::launch::async);
}

void RowStorage::grow(std::int64_t rows) {
  if (width_ == 0) return;
  const std::size_t existing = chunks_.size(), needed = chunk_of(rows + mask_);
  if (memory_ != nullptr) return grow_from_memory(needed);
  const auto bytes = static_cast<std::size_t>(chunk_bytes());
  while (chunks_.size() < needed) {
    void* memory = std::aligned_alloc(kAlignment, bytes);
    if (memory == nullptr) fail_memory("the system has none");
    chunks_.emplace_back(static_cast<float*>(memory));
  }
  // By all threads, because most of the time goes into the kernel's first touch of each page.
  parallel_blocks(static_cast<std::int64_t>(needed - existing), 1, [&](std::int64_t begin, std::int64_t) {
    std::memset(chunks_[existing + static_cast<std::size_t>(begin)].get(), 0, bytes);
  });
}

void RowStorage::fail_memory(const char* why) const {
  fail("no memory for another {} of embedding rows beside {} ({}): use fewer or narrower tables",
       human_bytes(static_cast<double>(chunk_bytes())), human_bytes(static_cast<double>(bytes())), why);
}

std::int64_t RowStorage::bytes() const {
  return static_cast<std::int64_t>(chunks_.size()) * chunk_bytes();
}

}  // namespace hstu
