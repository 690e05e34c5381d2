// Metrics of the ranks of targets among all items: hit rate and NDCG at cutoffs, MRR. A rank is an integer
// from 1, so that there are no ties to average. docs/metrics.md
#pragma once

#include <cstdint>
#include <span>

#include "hstu/metrics/measures.h"
#include "hstu/metrics/metric_spec.h"

namespace hstu {

// "hr@K" and "ndcg@K" for each cutoff (K >= 1), "mrr", "n". HR@K is the share of ranks of at most K, NDCG@K
// the mean of 1 / log2(1 + rank) over them, with 0 for the other ranks, MRR the mean of 1 / rank. `ranks`:
// (n) from 1, in any order, which changes no bit. Undefined without ranks.
Measures rank_metrics(std::span<const std::int64_t> ranks, std::span<const std::int64_t> cutoffs);

// The cutoffs of evaluations that name none.
inline constexpr std::int64_t kRetrievalCutoffs[] = {1, 5, 10, 50, 100, 200};

// The metrics of kinds of models that retrieve from a catalogue.
inline constexpr MetricSpec kRetrievalMetrics[] = {
    {.name = "ndcg", .title = "NDCG", .has_cutoff = true, .in_tables = true, .in_summary = true},
    {.name = "hr", .title = "hit rate", .has_cutoff = true, .in_tables = true, .in_summary = true},
    {.name = "mrr", .title = "MRR", .in_tables = true},
    {.name = "n", .title = "users", .better = Better::neither}};

}  // namespace hstu
