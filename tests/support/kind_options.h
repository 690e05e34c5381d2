// The keys of the kinds of models, for tests that set them.
#pragma once

#include "hstu/kinds/dlrmv4/dlrmv4_kind.h"
#include "hstu/kinds/ranking_gr/ranking_gr_kind.h"
#include "hstu/kinds/retrieval/retrieval_kind.h"
#include "hstu/kinds/semantic_ids/semantic_ids_kind.h"
#include "hstu/options/options.h"

namespace hstu {

// Of options of kind "dlrmv4".
inline Dlrmv4Config& dlrmv4_of(RunOptions& options) {
  return dynamic_cast<Dlrmv4Options&>(options.model.options()).config;
}
inline const Dlrmv4Config& dlrmv4_of(const RunOptions& options) {
  return options_as<Dlrmv4Options>(options.model.options()).config;
}

// Makes the options those of a model of kind "ranking_gr", unless they are.
inline RankingGrConfig& ranking_gr_of(RunOptions& options) {
  options.model.choose("ranking_gr");
  return dynamic_cast<RankingGrOptions&>(options.model.options()).config;
}

// Makes the options those of a model of kind "retrieval", unless they are.
inline RetrievalConfig& retrieval_of(RunOptions& options) {
  options.model.choose("retrieval");
  return dynamic_cast<RetrievalOptions&>(options.model.options()).config;
}

// Makes the options those of a model of kind "semantic_ids", unless they are.
inline SemanticIdsConfig& semantic_ids_of(RunOptions& options) {
  options.model.choose("semantic_ids");
  return dynamic_cast<SemanticIdsOptions&>(options.model.options()).config;
}

}  // namespace hstu
