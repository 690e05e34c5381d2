#include <algorithm>
#include <cmath>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/kernels/catalogue_tiles.h"

namespace hstu::kernels {
namespace {

constexpr std::int64_t kFewestKept = 64;  // short lists are not cut after every few items
constexpr std::int64_t kFewestQueries = 6;

bool comes_before(const ScoredItem& a, const ScoredItem& b) {
  return a.is_before(b);
}

bool is_excluded(const CatalogueQueries& queries, std::int64_t query, std::int64_t id) {
  return queries.excluded_offsets != nullptr &&
         std::binary_search(queries.excluded + queries.excluded_offsets[query],
                            queries.excluded + queries.excluded_offsets[query + 1], id);
}

}  // namespace

TopItems::TopItems(std::int64_t queries, std::int64_t k) : k_(k), lists_(static_cast<std::size_t>(queries)) {
  require(k >= 1, "expected at least 1 item of each query, found {}", k);
}

void TopItems::cut(List& list) const {
  if (std::ssize(list.kept) < k_) return;
  const auto kth = list.kept.begin() + (k_ - 1);
  std::nth_element(list.kept.begin(), kth, list.kept.end(), comes_before);
  list.last = *kth;
  list.is_full = true;
  list.kept.resize(static_cast<std::size_t>(k_));
}

void TopItems::offer(List& list, const ScoredItem& item) const {
  if (list.is_full && !item.is_before(list.last)) return;
  list.kept.push_back(item);
  if (std::ssize(list.kept) >= std::max(2 * k_, kFewestKept)) cut(list);
}

void TopItems::add(const CatalogueItems& items, const CatalogueQueries& queries) {
  if (items.n == 0 || queries.n == 0) return;
  const PackedItems packed(items);
  // One thread at a time has a query's list. The division changes no result.
  const std::int64_t grain =
      std::clamp<std::int64_t>(queries.n / (2 * std::int64_t{threads()}), kFewestQueries, kTileQueries);
  parallel_blocks(queries.n, grain, [&](std::int64_t first, std::int64_t last) {
    const Scratch<float> scores(kTileQueries * kTileItems);
    for (std::int64_t t = 0; t < packed.tiles(); ++t) {
      const ScoreTile tile = packed.score(queries, first, last - first, t, scores.data());
      for (std::int64_t q = first; q < last; ++q) {
        List& list = lists_[static_cast<std::size_t>(q)];
        const float* const row = tile.scores + (q - first) * tile.items;
        for (std::int64_t j = 0; j < tile.items; ++j) {
          if (list.is_full ? !(row[j] >= list.last.score) : std::isnan(row[j])) continue;
          const ScoredItem item{row[j], items.ids[tile.first_item + j]};
          if (!is_excluded(queries, q, item.id)) offer(list, item);
        }
      }
    }
  });
}

void TopItems::add(std::int64_t query, const ScoredItem& item) {
  offer(lists_[static_cast<std::size_t>(query)], item);
}

std::vector<std::vector<ScoredItem>> TopItems::take() {
  std::vector<std::vector<ScoredItem>> lists(lists_.size());
  parallel_blocks(std::ssize(lists_), kTileQueries, [&](std::int64_t first, std::int64_t last) {
    for (auto q = static_cast<std::size_t>(first); q < static_cast<std::size_t>(last); ++q) {
      cut(lists_[q]);
      std::sort(lists_[q].kept.begin(), lists_[q].kept.end(), comes_before);
      lists[q] = std::move(lists_[q].kept);
    }
  });
  lists_.clear();
  return lists;
}

}  // namespace hstu::kernels
