// Launches over lists of rows, of all tables at once: the lists travel as an argument.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hstu/device/cuda/launch.cuh"

namespace hstu::cuda {

inline constexpr int kThreads = 256, kWarps = kThreads / 32;

// The argument of a kernel. The host and the driver copy all of it for every launch, so few lists have a
// small one.
inline constexpr std::size_t kFewLists = 8, kMostLists = 64;
template <typename List, std::size_t kMost>
struct ListsOf {
  List list[kMost];
};

inline unsigned blocks_of(std::int64_t n, std::int64_t per_block) {
  return static_cast<unsigned>((n + per_block - 1) / per_block);
}

// launch(blocks, lists, number of the first) for every kMost lists, where one has rows: its `size`.
template <std::size_t kMost, typename List, typename Launch>
void for_lists_of(std::span<const List> lists, std::int64_t per_block, const Launch& launch) {
  for (std::size_t first = 0; first < lists.size(); first += kMost) {
    const auto some = lists.subspan(first, std::min(kMost, lists.size() - first));
    std::int64_t longest = 0;
    for (const List& list : some) longest = std::max(longest, list.size);
    if (longest == 0) continue;
    ListsOf<List, kMost> argument{};
    std::copy(some.begin(), some.end(), argument.list);
    launch(dim3(blocks_of(longest, per_block), static_cast<unsigned>(some.size())), argument, first);
  }
}

// The same, with the smaller argument that has room.
template <typename List, typename Launch>
void for_lists(std::span<const List> lists, std::int64_t per_block, const Launch& launch) {
  if (lists.size() <= kFewLists)
    for_lists_of<kFewLists>(lists, per_block, launch);
  else
    for_lists_of<kMostLists>(lists, per_block, launch);
}

}  // namespace hstu::cuda
