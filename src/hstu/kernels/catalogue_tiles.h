// Products of queries and a block of items, tile by tile: what counts and keeps scores reads them while they
// are in the cache, and a matrix of all scores never exists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "hstu/base/threads.h"
#include "hstu/kernels/catalogue_scores.h"
#include "hstu/kernels/loops.h"
#include "hstu/kernels/scratch.h"

namespace hstu::kernels {

constexpr std::int64_t kTileQueries = 48, kTileItems = 512;
static_assert(kTileItems % kPackedColumns == 0);

// The scores of some queries and items of a block, row by row.
struct ScoreTile {
  std::int64_t first_query = 0, queries = 0;
  std::int64_t first_item = 0, items = 0;
  const float* scores = nullptr;  // (queries, items)
};

// The rows of a block as products read them.
class PackedItems {
 public:
  explicit PackedItems(const CatalogueItems& items) : items_(items) {
    if (items_.packed != nullptr) return;
    packed_here_.emplace(packed_items_size(items.n, items.width));
    pack_items(items, packed_here_->data());
    items_.packed = packed_here_->data();
  }

  std::int64_t tiles() const { return (items_.n + kTileItems - 1) / kTileItems; }

  // scores (queries, items of tile `tile`) of the queries from `first` on.
  ScoreTile score(const CatalogueQueries& queries, std::int64_t first, std::int64_t count, std::int64_t tile,
                  float* scores) const {
    const std::int64_t begin = tile * kTileItems, n = std::min(kTileItems, items_.n - begin);
    loops<float>().multiply({.m = count,
                             .n = n,
                             .k = items_.width,
                             .a = queries.vectors + first * items_.width,
                             .a_stride = items_.width,
                             .b = items_.packed + begin * items_.width,
                             .packed_rows = items_.width,
                             .packed_columns = n,
                             .c = scores,
                             .c_stride = n});
    return {.first_query = first, .queries = count, .first_item = begin, .items = n, .scores = scores};
  }

 private:
  CatalogueItems items_;
  std::optional<Scratch<float>> packed_here_;
};

}  // namespace hstu::kernels
