#include <algorithm>
#include <atomic>
#include <cmath>

#include "hstu/kernels/catalogue_tiles.h"

namespace hstu::kernels {
namespace {

// The ids of a tile's items.
struct TileIds {
  const std::int64_t *begin, *end;

  TileIds(const CatalogueItems& items, const ScoreTile& tile)
      : begin(items.ids + tile.first_item), end(begin + tile.items) {}
  std::int64_t index_of(std::int64_t id) const { return std::lower_bound(begin, end, id) - begin; }
};

// A query and its target.
struct Target {
  std::int64_t id;
  float score;

  // Whether an item of this id and score comes before the target. Written so that NaN does.
  bool follows(std::int64_t item, float s) const { return item < id ? !(s < score) : !(s <= score); }
};

std::int64_t count_row(const float* scores, const TileIds& ids, const Target& target) {
  const std::int64_t n = ids.end - ids.begin, split = ids.index_of(target.id);
  std::int32_t better = 0;
#pragma omp simd reduction(+ : better)
  for (std::int64_t j = 0; j < split; ++j) better += !(scores[j] < target.score);
  const std::int64_t behind = split < n && ids.begin[split] == target.id ? split + 1 : split;
#pragma omp simd reduction(+ : better)
  for (std::int64_t j = behind; j < n; ++j) better += !(scores[j] <= target.score);
  return better;
}

// Those of the excluded items that count_row has counted.
std::int64_t count_excluded(const CatalogueQueries& queries, std::int64_t query, const float* scores,
                            const TileIds& ids, const Target& target) {
  if (queries.excluded_offsets == nullptr) return 0;
  const std::int64_t* const end = queries.excluded + queries.excluded_offsets[query + 1];
  const std::int64_t* excluded =
      std::lower_bound(queries.excluded + queries.excluded_offsets[query], end, *ids.begin);
  std::int64_t counted = 0;
  for (; excluded != end && *excluded <= ids.end[-1]; ++excluded) {
    const std::int64_t j = ids.index_of(*excluded);
    if (ids.begin[j] == *excluded && *excluded != target.id && target.follows(*excluded, scores[j]))
      ++counted;
  }
  return counted;
}

}  // namespace

std::int64_t packed_items_size(std::int64_t n, std::int64_t width) {
  return packed_size(width, n);
}

void pack_items(const CatalogueItems& items, float* packed) {
  parallel_blocks(items.n, kTileItems, [&](std::int64_t begin, std::int64_t end) {
    loops<float>().pack({.k = items.width,
                         .n = end - begin,
                         .b = items.rows + begin * items.width,
                         .stride = items.width,
                         .transposed = true,
                         .packed = packed + begin * items.width});
  });
}

void target_scores(const TargetScores& p, HostStream) {
  const std::int64_t width = p.items.width;
  const std::int64_t *const ids = p.items.ids, *const end = ids + p.items.n;
  parallel_blocks(p.queries.n, kTileQueries, [&](std::int64_t first, std::int64_t last) {
    const Scratch<float> packed(packed_size(width, 1));
    for (std::int64_t q = first; q < last; ++q) {
      const std::int64_t* const found = std::lower_bound(ids, end, p.targets[q]);
      if (found == end || *found != p.targets[q]) continue;
      // The loop that computes all scores, with one item.
      loops<float>().pack({.k = width,
                           .n = 1,
                           .b = p.items.rows + (found - ids) * width,
                           .stride = width,
                           .transposed = true,
                           .packed = packed.data()});
      loops<float>().multiply({.m = 1,
                               .n = 1,
                               .k = width,
                               .a = p.queries.vectors + q * width,
                               .a_stride = width,
                               .b = packed.data(),
                               .packed_rows = width,
                               .packed_columns = 1,
                               .c = p.scores + q,
                               .c_stride = 1});
      p.found[q] = 1;
    }
  });
}

void count_better(const CountBetter& p, HostStream) {
  if (p.items.n == 0 || p.queries.n == 0) return;
  const PackedItems packed(p.items);
  const std::int64_t rows = (p.queries.n + kTileQueries - 1) / kTileQueries;
  parallel_blocks(rows * packed.tiles(), 1, [&](std::int64_t task, std::int64_t) {
    const std::int64_t first = task / packed.tiles() * kTileQueries;
    const std::int64_t count = std::min(kTileQueries, p.queries.n - first);
    const Scratch<float> scores(kTileQueries * kTileItems);
    const ScoreTile tile = packed.score(p.queries, first, count, task % packed.tiles(), scores.data());
    const TileIds ids(p.items, tile);
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t q = first + r;
      const float* const row = tile.scores + r * tile.items;
      const Target target{p.targets[q], p.scores[q]};
      const std::int64_t excluded = count_excluded(p.queries, q, row, ids, target),
                         better = count_row(row, ids, target) - excluded;
      std::atomic_ref(p.better[q]).fetch_add(better, std::memory_order_relaxed);
      std::atomic_ref(p.excluded_better[q]).fetch_add(excluded, std::memory_order_relaxed);
    }
  });
}

void find_not_finite(const NotFinite& p, HostStream) {
  const float* const bad =
      std::find_if(p.norms, p.norms + p.n, [](float norm) { return !std::isfinite(norm); });
  if (bad != p.norms + p.n) *p.first_bad = std::min(*p.first_bad, p.first + (bad - p.norms));
}

}  // namespace hstu::kernels
