#include "hstu/dataset/anchor_list.h"

#include <algorithm>
#include <utility>

#include "hstu/base/contains.h"

namespace hstu {

AnchorList::AnchorList(std::span<const std::int64_t> positions, std::span<const std::int64_t> offsets,
                       std::shared_ptr<const void> storage)
    : storage_{std::move(storage)}, size_(static_cast<std::int64_t>(positions.size())) {
  for (std::size_t w = 0; w + 1 < offsets.size(); ++w) {
    windows_.push_back(positions.subspan(static_cast<std::size_t>(offsets[w]),
                                         static_cast<std::size_t>(offsets[w + 1] - offsets[w])));
  }
}

AnchorList::AnchorList(std::vector<std::int64_t> positions, std::span<const std::int64_t> offsets) {
  const auto owned = std::make_shared<const std::vector<std::int64_t>>(std::move(positions));
  *this = AnchorList(std::span(*owned), offsets, owned);
}

std::vector<std::int64_t> AnchorList::first(std::int64_t limit) const {
  const auto count = static_cast<std::size_t>(std::min(limit, size_));
  std::vector<std::int64_t> positions;
  positions.reserve(count);
  for (const Window& window : windows_) {
    const auto part = window.first(std::min(window.size(), count - positions.size()));
    positions.insert(positions.end(), part.begin(), part.end());
  }
  return positions;
}

void AnchorList::keep(const std::shared_ptr<const void>& storage) {
  if (!contains(storage_, storage)) storage_.push_back(storage);
}

void AnchorList::append(const AnchorList& other, std::int64_t window) {
  for (const auto& storage : other.storage_) keep(storage);
  windows_.push_back(other.window(window));
  size_ += static_cast<std::int64_t>(windows_.back().size());
}

void AnchorList::append(std::vector<std::int64_t> positions) {
  const auto owned = std::make_shared<const std::vector<std::int64_t>>(std::move(positions));
  keep(owned);
  windows_.emplace_back(*owned);
  size_ += static_cast<std::int64_t>(owned->size());
}

}  // namespace hstu
