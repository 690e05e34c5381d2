// Launches over lists of rows, of all tables at once: the lists travel as an argument.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hstu/device/cuda/check.h"

namespace hstu::cuda {

inline constexpr int kThreads = 256, kWarps = kThreads / 32;
inline constexpr std::size_t kMostLists = 64;  // of one launch

template <typename List>
struct ListsOf {
  List list[kMostLists];
};

inline unsigned blocks_of(std::int64_t n, std::int64_t per_block) {
  return static_cast<unsigned>((n + per_block - 1) / per_block);
}

// launch(blocks, lists, number of the first) for every kMostLists lists, where one has rows: its `size`.
// `what`: for the message of an error.
template <typename List, typename Launch>
void for_lists(std::span<const List> lists, std::int64_t per_block, const char* what, const Launch& launch) {
  for (std::size_t first = 0; first < lists.size(); first += kMostLists) {
    const auto some = lists.subspan(first, std::min(kMostLists, lists.size() - first));
    ListsOf<List> argument{};
    std::copy(some.begin(), some.end(), argument.list);
    std::int64_t longest = 0;
    for (const List& list : some) longest = std::max(longest, list.size);
    if (longest == 0) continue;
    launch(dim3(blocks_of(longest, per_block), static_cast<unsigned>(some.size())), argument, first);
  }
  check_cuda(cudaGetLastError(), what);
}

}  // namespace hstu::cuda
