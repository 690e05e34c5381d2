// Positions of anchors by window of time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace hstu {

// W windows of positions, ascending inside a window (user-major, not by time). It is a view of memory,
// usually of mapped files, and keeps this memory alive; copies are cheap.
class AnchorList {
 public:
  using Window = std::span<const std::int64_t>;

  AnchorList() = default;
  // Window w has the positions [offsets[w], offsets[w + 1]).
  AnchorList(std::vector<std::int64_t> positions, std::span<const std::int64_t> offsets);
  AnchorList(std::span<const std::int64_t> positions, std::span<const std::int64_t> offsets,
             std::shared_ptr<const void> storage);

  std::int64_t size() const { return size_; }  // of all windows
  std::int64_t windows() const { return static_cast<std::int64_t>(windows_.size()); }
  Window window(std::int64_t w) const { return windows_[static_cast<std::size_t>(w)]; }
  // The first min(limit, size()) positions, window after window.
  std::vector<std::int64_t> first(std::int64_t limit) const;

  // Appends a window whose positions are in the storage of this list, of `other`, or in its own.
  void append(const AnchorList& other, std::int64_t window);
  void append(std::vector<std::int64_t> positions);
  void append_empty() { windows_.emplace_back(); }

 private:
  void keep(const std::shared_ptr<const void>& storage);

  std::vector<Window> windows_;
  std::vector<std::shared_ptr<const void>> storage_;
  std::int64_t size_ = 0;
};

}  // namespace hstu
