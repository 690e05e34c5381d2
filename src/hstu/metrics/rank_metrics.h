// Metrics of the ranks of targets among all items: hit rate and NDCG at cutoffs, MRR. A rank is an integer
// from 1, so that there are no ties to average. docs/metrics.md
#pragma once

#include <cstdint>
#include <span>

#include "hstu/metrics/measures.h"
#include "hstu/metrics/metric_spec.h"

namespace hstu {

// The cutoffs that every evaluation measures, among them those of the metrics without @K in
// kRetrievalMetrics.
inline constexpr std::int64_t kRetrievalCutoffs[] = {1, 5, 10, 50, 100, 200};

// The rank of a target that a list does not have: behind all items, and nothing of MRR.
inline constexpr std::int64_t kUnranked = std::int64_t{1} << 60;

// "hr@K" and "ndcg@K" for each K of kRetrievalCutoffs and `cutoffs` (from 1), ascending, then "mrr", "n".
// HR@K is the share of ranks of at most K, NDCG@K the mean of 1 / log2(1 + rank) over them, with 0 for the
// other ranks, MRR the mean of 1 / rank. `ranks`: (n) from 1, in any order, which changes no bit. Undefined
// without ranks. `weights`: (n), not negative, with which they count in shares and means; empty: 1 each.
Measures rank_metrics(std::span<const std::int64_t> ranks, std::span<const std::int64_t> cutoffs = {},
                      std::span<const float> weights = {});

// Places of a list that a target may have, each as probable as the others: first .. first + count - 1.
struct RankRange {
  std::int64_t first = 1;  // from 1
  std::int64_t count = 1;
};
// The same as expectations over the places of each target. With P items before a group of G this is the
// collision-corrected evaluation of semantic ids: HR@K = e / G and NDCG@K = (1 / G) sum over m = 1 .. e of 1
// / log2(1 + P + m), with e = min(G, max(0, K - P)).
Measures rank_metrics(std::span<const RankRange> ranks, std::span<const std::int64_t> cutoffs = {},
                      std::span<const float> weights = {});

// The metrics of kinds of models that retrieve from a catalogue.
inline constexpr MetricSpec kRetrievalMetrics[] = {
    {.name = "ndcg@10", .title = "NDCG@10", .in_tables = true, .in_summary = true, .logs_baseline = true},
    {.name = "hr@10", .title = "HR@10", .in_tables = true, .in_summary = true, .logs_baseline = true},
    {.name = "mrr", .title = "MRR", .in_tables = true},
    {.name = "n", .title = "samples", .better = Better::neither},
    {.name = "ndcg", .title = "NDCG", .has_cutoff = true, .of_lists = true},
    {.name = "hr", .title = "hit rate", .has_cutoff = true, .of_lists = true}};

}  // namespace hstu
