#include "hstu/embedding/row_storage.h"

#include <cstring>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

constexpr std::int64_t kAlignment = 64;

}  // namespace

RowStorage::RowStorage(std::int64_t width, std::pmr::memory_resource* memory, std::int64_t chunk_bytes)
    : width_(width), memory_(memory), shift_(chunk_shift(width, chunk_bytes)) {
  require(width >= 0, "expected a width >= 0, found {}", width);
  mask_ = (std::int64_t{1} << shift_) - 1;
}

std::int64_t RowStorage::chunk_bytes() const {
  const std::int64_t bytes = (width_ << shift_) * static_cast<std::int64_t>(sizeof(float));
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void RowStorage::grow(std::int64_t rows) {
  if (width_ == 0) return;
  const std::size_t existing = chunks_.size(), needed = chunk_of(rows + mask_);
  const auto bytes = static_cast<std::size_t>(chunk_bytes());
  while (memory_ != nullptr && chunks_.size() < needed)
    chunks_.emplace_back(static_cast<float*>(memory_->allocate(bytes)), Free{memory_, bytes});
  while (chunks_.size() < needed) {
    void* memory = std::aligned_alloc(kAlignment, bytes);
    check(memory != nullptr,
          "no memory for another {} of embedding rows beside {}: use fewer or narrower tables",
          human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(this->bytes())));
    chunks_.emplace_back(static_cast<float*>(memory));
  }
  if (memory_ != nullptr) return;
  // By all threads, because most of the time goes into the kernel's first touch of each page.
  parallel_blocks(static_cast<std::int64_t>(needed - existing), 1, [&](std::int64_t begin, std::int64_t) {
    std::memset(chunks_[existing + static_cast<std::size_t>(begin)].get(), 0, bytes);
  });
}

std::int64_t RowStorage::bytes() const {
  return static_cast<std::int64_t>(chunks_.size()) * chunk_bytes();
}

}  // namespace hstu
