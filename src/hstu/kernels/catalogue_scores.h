// Scores of queries and items of a catalogue, and what is counted and kept of them. A score is the product of
// two vectors, a0 b0 + a1 b1 + ... in this order, one fused multiply-add a step: its bits depend on the two
// vectors alone, and not on the block, the thread or the rank that computes it. So a target's score can be
// compared with those of all items, and parts of a catalogue give the same as the whole.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"

namespace hstu::kernels {

// A block of items.
struct CatalogueItems {
  std::int64_t n = 0, width = 0;
  const float* rows = nullptr;        // (n, width)
  const std::int64_t* ids = nullptr;  // (n) ascending
  // Of pack_items(), read on processors alone. Null: each call packs the rows itself.
  const float* packed = nullptr;
  // Of round_items(), read on GPUs alone. Null: each call of add_top_block rounds the rows itself.
  const BFloat16* rounded = nullptr;
  const float* most_norm = nullptr;
};

// The rows as products on processors read them, for a block that several calls compare with queries.
// packed (packed_items_size(n, width)), aligned to 64 bytes.
std::int64_t packed_items_size(std::int64_t n, std::int64_t width);
void pack_items(const CatalogueItems& items, float* packed);

// The rows in bfloat16, by which add_top_block rules items out: rounded (n, rounded_width(width)), and
// most_norm (1), the largest of their norms. Width 0: it does not on this GPU, or not for rows so wide.
std::int64_t rounded_width(std::int64_t width, CudaStream);
void round_items(const CatalogueItems& items, BFloat16* rounded, float* most_norm, CudaStream);

struct CatalogueQueries {
  std::int64_t n = 0;
  const float* vectors = nullptr;  // (n, width)
  // Items that do not count for a query: ids [offsets[q], offsets[q + 1]), ascending, each once; they need
  // not be in the catalogue. Null: none.
  const std::int64_t *excluded_offsets = nullptr, *excluded = nullptr;
};

// Of queries whose target is in the block: its score, and found = 1. Others keep what they have.
struct TargetScores {
  CatalogueItems items;
  CatalogueQueries queries;
  const std::int64_t* targets = nullptr;  // (queries)
  float* scores = nullptr;                // (queries)
  std::uint8_t* found = nullptr;          // (queries)
};
void target_scores(const TargetScores& p, HostStream);
void target_scores(const TargetScores& p, CudaStream);

// better[q] += the items of the block that come before the query's target: with a higher score, or with an
// equal one and a smaller id; excluded_better[q] those that are excluded, which `better` has not. The target
// itself does not count, excluded or not. A score that is NaN counts as higher, so that an undefined product
// never improves a rank.
struct CountBetter {
  CatalogueItems items;
  CatalogueQueries queries;
  const std::int64_t* targets = nullptr;    // (queries)
  const float* scores = nullptr;            // (queries) of the targets
  std::int64_t* better = nullptr;           // (queries)
  std::int64_t* excluded_better = nullptr;  // (queries)
};
void count_better(const CountBetter& p, HostStream);
void count_better(const CountBetter& p, CudaStream);

// first_bad = the least number, first + i, of an item whose norm is not finite, if it is below what is there.
struct NotFinite {
  std::int64_t n = 0, first = 0;
  const float* norms = nullptr;       // (n)
  std::int64_t* first_bad = nullptr;  // (1)
};
void find_not_finite(const NotFinite& p, HostStream);
void find_not_finite(const NotFinite& p, CudaStream);

struct ScoredItem {
  float score = 0;
  std::int64_t id = 0;

  // Whether it comes before `other`: score descending, id ascending.
  bool is_before(const ScoredItem& other) const {
    return score > other.score || (score == other.score && id < other.id);
  }
  bool operator==(const ScoredItem&) const = default;
};

// The first k items of each query, over any number of blocks in any order. An item with a NaN score is left
// out.
class TopItems {
 public:
  TopItems(std::int64_t queries, std::int64_t k);

  void add(const CatalogueItems& items, const CatalogueQueries& queries);
  // Items of query `query` that another object found, such as another rank's.
  void add(std::int64_t query, const ScoredItem& item);
  // (queries) lists in order, shorter than k where there are fewer items. Ends the object.
  std::vector<std::vector<ScoredItem>> take();

 private:
  struct List {
    std::vector<ScoredItem> kept;  // at most 2 k
    ScoredItem last;               // once there are k: the k-th of those seen so far
    bool is_full = false;
  };
  void offer(List& list, const ScoredItem& item) const;
  void cut(List& list) const;

  std::int64_t k_;
  std::vector<List> lists_;  // (queries)
};

// The same on a GPU, block after block: the first k of the items that have come, as numbers whose order is
// that of items.
inline constexpr std::int64_t kMostTopItems = 2048;
struct TopBlock {
  CatalogueItems items;
  CatalogueQueries queries;
  std::int64_t first = 0;         // number of the block's first item in the catalogue
  std::int64_t k = 0;             // up to kMostTopItems
  std::uint64_t* kept = nullptr;  // (queries, k), zeros before the first block
};
void add_top_block(const TopBlock& p, CudaStream);

struct TopKept {
  std::int64_t queries = 0, k = 0;
  const std::uint64_t* kept = nullptr;  // (queries, k)
  std::int32_t* items = nullptr;        // (queries, k) numbers in the catalogue, in order; -1: no more
  float* scores = nullptr;              // (queries, k)
};
void read_top(const TopKept& p, CudaStream);

}  // namespace hstu::kernels
