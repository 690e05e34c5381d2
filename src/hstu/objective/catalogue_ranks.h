// Exact ranks of targets among all items, and the first K items, of queries: every rank has a part of the
// catalogue. Scores and order: kernels/catalogue_scores.h.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/kernels/catalogue_scores.h"
#include "hstu/metrics/rank_metrics.h"
#include "hstu/objective/catalogue_blocks.h"

namespace hstu {

// Q queries with vectors of the rows' width. Lists of excluded ids: ascending, each once.
struct CatalogueQueryList {
  std::vector<float> vectors;                            // (Q, E)
  std::vector<std::int64_t> excluded_offsets, excluded;  // (Q + 1), or both empty: none
  std::int64_t size(std::int64_t width) const { return static_cast<std::int64_t>(vectors.size()) / width; }
};

// 1 + the items that come before a target: with a higher score, or with an equal one and a smaller id.
struct CatalogueRank {
  std::int64_t unseen = kUnranked;  // of the items that are not excluded; the target is one in any case
  std::int64_t all = kUnranked;     // of all items
  bool operator==(const CatalogueRank&) const = default;
};

// (Q) kUnranked for a target that no rank has. All ranks of `comm` give the same queries and get the same
// ranks. Throws NotFiniteError for an item with a value that is not finite.
std::vector<CatalogueRank> catalogue_ranks(const CatalogueScores& catalogue,
                                           const CatalogueQueryList& queries,
                                           const std::vector<std::int64_t>& targets, Communicator& comm);
// The same of a catalogue that several calls read.
std::vector<CatalogueRank> catalogue_ranks(CatalogueBlocks& blocks, const CatalogueQueryList& queries,
                                           const std::vector<std::int64_t>& targets, Communicator& comm);

// (Q) the first k items that are not excluded, fewer where there are fewer: the same for all divisions of the
// catalogue, on every rank.
std::vector<std::vector<kernels::ScoredItem>> catalogue_top(const CatalogueScores& catalogue,
                                                            const CatalogueQueryList& queries, std::int64_t k,
                                                            Communicator& comm);
// The same of a catalogue that several calls read.
std::vector<std::vector<kernels::ScoredItem>> catalogue_top(CatalogueBlocks& blocks,
                                                            const CatalogueQueryList& queries, std::int64_t k,
                                                            Communicator& comm);

// (V, E) this rank's items as they are compared, in the order of their ids. Throws NotFiniteError.
std::vector<float> catalogue_vectors(const CatalogueScores& catalogue);

}  // namespace hstu
