// A small batch for the second model: three samples, contextual features, repeated items.
#pragma once

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "hstu/kinds/ranking_gr/ranking_gr.h"
#include "support/op_cases.h"

namespace hstu::testing {

inline RankingGrConfig small_ranking(std::int64_t candidates = 0) {
  RankingGrConfig config;
  config.embedding_dim = 3;
  config.dim = 4;
  config.layers = config.heads = 2;
  config.head_dim = 2;
  config.positions = 7;  // fewer than the longest sequence has tokens
  config.dropout = 0.3;
  config.candidates = candidates;
  config.head_hidden = {5};
  config.head_activation = kernels::Activation::gelu;
  config.labels = {"a", "b", "c"};
  config.context = 2;
  config.contextual_mask = true;
  config.max_sequence = 2 + 2 * 5;
  return config;
}

inline SampleFeatures ranking_features(std::int64_t context = 2) {
  SampleFeatures features({"item", 100});
  for (std::int64_t c = 0; c < context; ++c) features.context.push_back({fmt::format("c{}", c), 10});
  return features;
}

// Histories of 0, 2 and 4 events. Labels are below 3, so that they are masks and classes.
inline Samples ranking_samples(std::int64_t candidates = 0, std::int64_t context = 2) {
  Samples s;
  s.count = 3;
  s.history_offsets = {0, 0, 2, 6};
  s.items = {10, 20, 30, 40};
  s.history_item = {0, 1, 2, 1, 0, 3};
  s.history_action.assign(6, 0);
  s.history_time.assign(6, 0);
  s.candidate_item = {2, 0, 1};
  s.candidate_time.assign(3, 0);
  s.label.assign(3, 0);
  s.user = {7, 8, 9};
  s.position = {100, 200, 300};
  s.event_action = {1, 0, 1, 2, 2, 0, 1, 1, 0};
  s.event_label = {2, 0, 1, 2, 1, 1, 2, 0, 1};
  s.event_rankable.assign(9, 1);
  for (const std::int32_t events : {1, 3, 5})
    s.candidates.push_back(candidates == 0 ? events
                                           : std::min(events, static_cast<std::int32_t>(candidates)));
  for (std::int64_t c = 0; c < context; ++c) s.context.push_back({c, 1, 1});
  return s;
}

inline Batch ranking_batch(const RankingGr& model, const Samples& samples) {
  Batch batch;
  LayoutScratch scratch;
  model.layout().lay_out(samples, scratch, batch);
  batch.supervised = batch.tensor(ranking_gr::kExample).size();
  return batch;
}

// A random row for every id below the feature's bound, of which a batch takes its distinct ids.
inline std::vector<Variable> ranking_rows(const RankingGr& model, const Batch& batch) {
  std::vector<Variable> rows;
  for (const FeatureSpec& feature : model.features()) {
    const Tensor table =
        random_tensor({feature.rows, model.embedding_dim()}, DType::f64, derive_key(5, feature.name));
    const auto ids = batch.values<std::int64_t>(ids_column(feature.name));
    Tensor taken = Tensor::empty({static_cast<std::int64_t>(ids.size()), model.embedding_dim()}, DType::f64);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      taken.row_range(static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1)
          .copy_from(table.row_range(ids[i], ids[i] + 1), Stream());
    }
    rows.emplace_back(taken);
  }
  return rows;
}

inline std::vector<double> ranking_logits(const RankingGr& model, const Samples& samples,
                                          const Draws& draws = Draws()) {
  const Batch batch = ranking_batch(model, samples);
  Tape tape(false);
  const Tensor logits = model.forward(tape, batch, ranking_rows(model, batch), draws).value();
  return {logits.data<double>(), logits.data<double>() + logits.size()};
}

}  // namespace hstu::testing
