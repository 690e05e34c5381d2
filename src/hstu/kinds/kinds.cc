#include "hstu/kinds/kinds.h"

#include "hstu/kinds/dlrmv4/dlrmv4_kind.h"
#include "hstu/kinds/ranking_gr/ranking_gr_kind.h"
#include "hstu/kinds/retrieval/retrieval_kind.h"
#include "hstu/kinds/semantic_ids/semantic_ids_kind.h"
#include "hstu/metrics/rank_metrics.h"
#include "hstu/metrics/ranking.h"

namespace hstu {

std::span<const Kind> kinds() {
  static constexpr Kind kKinds[] = {
      {.name = "dlrmv4",
       .title = "MLPerf's DLRMv4",
       .metrics = kRankingMetrics,
       .options = default_options<Dlrmv4Options>,
       .check = dlrmv4::check,
       .make = dlrmv4::make,
       .propose = dlrmv4::propose,
       .reads_actions = true},
      {.name = "ranking_gr",
       .title = "RankingGR of NVIDIA's recsys-examples",
       .metrics = kRankingMetrics,
       .options = default_options<RankingGrOptions>,
       .check = ranking_gr::check,
       .make = ranking_gr::make,
       .propose = ranking_gr::propose,
       .predicts_histories = true,
       .reads_attributes = false},
      {.name = "retrieval",
       .title = "the next item out of all: HSTU as Meta's and NVIDIA's code has it, and SASRec",
       .metrics = kRetrievalMetrics,
       .options = default_options<RetrievalOptions>,
       .check = retrieval::check,
       .make = retrieval::make,
       .propose = retrieval::propose,
       .samples_are_users = true,
       .optimizers = retrieval::kOptimizers},
      {.name = "semantic_ids",
       .title = "the codes of the next item, by a decoder and a beam search over those that exist",
       .metrics = kRetrievalMetrics,
       .options = default_options<SemanticIdsOptions>,
       .check = semantic_ids::check,
       .make = semantic_ids::make,
       .propose = semantic_ids::propose,
       .reads_items = false,
       .samples_are_users = true,
       .optimizers = semantic_ids::kOptimizers},
  };
  return kKinds;
}

}  // namespace hstu
