#include "hstu/kinds/ranking_gr/ranking_gr_layout.h"

#include <algorithm>
#include <vector>

#include "hstu/model/draws.h"
#include "hstu/model/layer_flops.h"

namespace hstu {

std::int32_t ranking_position_row(std::int64_t n, std::int64_t history, std::int64_t positions) {
  return static_cast<std::int32_t>(std::min({n, history, positions - 1}));
}

HstuLayerConfig ranking_layer(const RankingGrConfig& config) {
  return {.dim = config.dim,
          .heads = config.heads,
          .head_dim = config.head_dim,
          .gate = ops::GateForm::product,
          .epsilon = config.norm_epsilon,
          .residual = config.residual,
          .recompute = config.recompute};
}

AttentionMask ranking_mask(const RankingGrConfig& config) {
  return {.right = config.causal ? 0 : -1, .target_group = static_cast<std::int32_t>(config.target_group)};
}

SampleMask ranking_mask(const RankingGrConfig& config, std::int64_t tokens, std::int32_t contexts,
                        std::int32_t targets) {
  const AttentionMask mask = ranking_mask(config);
  return sample_mask(static_cast<std::int32_t>(tokens), contexts, targets, mask.target_group, mask.left,
                     mask.right);
}

std::vector<FeatureSpec> RankingGrLayout::features() const {
  std::vector<FeatureSpec> all = features_.all();
  if (config_.actions) all.push_back(action_);
  return all;
}

void RankingGrLayout::lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const {
  require(samples.candidates.size() == static_cast<std::size_t>(samples.count),
          "ranking_gr: the samples have no labels of their events");
  const std::int64_t n = samples.count,
                     events = samples.history_offsets.back() + std::ssize(samples.candidate_item);
  batch.tokens = n * config_.context + events * config_.tokens_of_event();
  for (std::size_t b = 0; b < static_cast<std::size_t>(n); ++b)
    batch.tokens -= samples.known_of(b) > 0 ? config_.context : 0;
  batch.reserve(6 * Batch::column_bytes<std::int32_t>(batch.tokens) +
                2 * Batch::column_bytes<std::int64_t>(batch.tokens) +
                5 * Batch::column_bytes<std::int64_t>(events) +
                Batch::column_bytes<std::int64_t>(static_cast<std::int64_t>(samples.items.size())) +
                (12 + 2 * config_.context) * Batch::column_bytes<std::int64_t>(n + 1));
  add_sample_columns(samples, batch);
  add_feature_columns(samples, features_, scratch, batch);
  if (config_.actions) add_event_ids(action_, samples.event_action, samples, scratch, batch);
  add_tokens(samples, scratch, batch);
  add_candidates(samples, batch);
}

void RankingGrLayout::add_tokens(const Samples& samples, const LayoutScratch& scratch, Batch& batch) const {
  const std::int64_t n = samples.count, per_event = config_.tokens_of_event();
  // Columns are found by name only when all have been added: adding one may move the others.
  const auto offsets = batch.add<std::int64_t>(ranking_gr::kOffsets, {n + 1});
  const auto work = batch.add<std::int64_t>(kWorkColumn, {n});
  const auto contexts = batch.add<std::int32_t>(ranking_gr::kContexts, {n});
  const auto targets = batch.add<std::int32_t>(ranking_gr::kTargets, {n});
  const auto item = batch.add<std::int32_t>(index_column(features_.item.name), {batch.tokens});
  const auto action = batch.add<std::int32_t>(index_column(action_.name), {batch.tokens});
  const auto context_row = batch.add<std::int32_t>(ranking_gr::kContext, {batch.tokens});
  const auto position = batch.add<std::int32_t>(ranking_gr::kPosition, {batch.tokens});
  const auto name = batch.add<std::int64_t>(ranking_gr::kTokenName, {batch.tokens});
  std::vector<std::span<const std::int32_t>> row_of_feature;
  std::vector<std::int32_t> first_row;
  std::int32_t rows = 0;
  for (const FeatureSpec& feature : features_.context) {
    row_of_feature.push_back(batch.values<std::int32_t>(index_column(feature.name)));
    first_row.push_back(rows);
    rows += static_cast<std::int32_t>(batch.values<std::int64_t>(ids_column(feature.name)).size());
  }
  const HstuLayerConfig layer = ranking_layer(config_);
  offsets[0] = 0;
  std::size_t t = 0, event = 0;
  for (std::int64_t b = 0; b < n; ++b) {
    const auto sample = static_cast<std::size_t>(b);
    const std::int64_t history = samples.history_offsets[sample], events = samples.events_of(sample);
    // Contexts are before the first event: known with it.
    const std::int64_t known = samples.known_of(sample), context = known > 0 ? 0 : config_.context,
                       known_tokens = known > 0 ? config_.context + known * per_event : 0;
    const std::int64_t length = context + events * per_event;
    // Of a request; an anchor has one candidate. The others have the place of the first.
    const std::int64_t candidates = samples.candidates_of(sample), before = events - candidates;
    const std::int64_t scored =
        config_.candidates > 0 ? samples.candidates[sample] : (candidates > 1 ? candidates : 0);
    targets[sample] = static_cast<std::int32_t>(scored * per_event);
    const std::int64_t positioned =
        known_tokens + length - (config_.candidates > 0 ? scored : candidates - 1) * per_event;
    contexts[sample] = static_cast<std::int32_t>(config_.contextual_mask ? context : 0);
    std::int64_t place = known_tokens;  // in the whole sample, whose first candidate has all others' place
    const auto add = [&](std::int32_t of_item, std::int32_t of_action, std::int32_t of_context,
                         std::int64_t others) {
      item[t] = of_item, action[t] = of_action, context_row[t] = of_context;
      position[t] = ranking_position_row(place - others, positioned, config_.positions);
      name[t++] = token_name(samples.position[sample], place++);
    };
    for (std::size_t c = 0; c < static_cast<std::size_t>(context); ++c)
      add(-1, -1, first_row[c] + row_of_feature[c][sample], 0);
    const std::int32_t* const items = samples.history_item.data() + history;
    const std::int32_t* const candidate_items =
        samples.candidate_item.data() + samples.candidate_begin(sample);
    for (std::int64_t e = 0; e < events; ++e) {
      const std::int64_t others = std::max<std::int64_t>(0, e - before) * per_event;
      add(e < before ? items[e] : candidate_items[e - before], -1, -1, others);
      if (config_.actions) add(-1, scratch.index[event + static_cast<std::size_t>(e)], -1, others);
    }
    event += static_cast<std::size_t>(events);
    offsets[sample + 1] = static_cast<std::int64_t>(t);
    const SampleMask mask = ranking_mask(config_, length, contexts[sample], targets[sample]);
    work[sample] = config_.layers * layer_flops(layer, mask, mask.n).forward();
    batch.longest = std::max(batch.longest, length);
  }
}

void RankingGrLayout::add_candidates(const Samples& samples, Batch& batch) const {
  const std::int64_t n = samples.count, per_event = config_.tokens_of_event();
  std::int64_t candidates = 0, examples = 0;
  std::size_t event = 0;
  for (std::size_t b = 0; b < static_cast<std::size_t>(n); ++b) {
    candidates += samples.candidates[b];
    event += static_cast<std::size_t>(samples.events_of(b));
    for (std::size_t e = event - static_cast<std::size_t>(samples.candidates[b]); e < event; ++e)
      examples += samples.event_rankable[e];
  }
  const bool all = config_.candidates == 0;
  std::span<std::int32_t> token;
  std::span<std::int64_t> name, offsets;
  if (!all) {
    token = batch.add<std::int32_t>(ranking_gr::kQuery, {candidates * per_event});
    name = batch.add<std::int64_t>(ranking_gr::kQueryName, {candidates * per_event});
    offsets = batch.add<std::int64_t>(ranking_gr::kQueryOffsets, {n + 1});
    offsets[0] = 0;
  }
  const auto example = batch.add<std::int32_t>(ranking_gr::kExample, {examples});
  const auto user = batch.add<std::int64_t>(ranking_gr::kExampleUser, {examples});
  const auto position = batch.add<std::int64_t>(ranking_gr::kExampleAnchor, {examples});
  const auto label = batch.add<std::int64_t>(ranking_gr::kExampleLabel, {examples});
  const bool weighted = !samples.event_weight.empty();
  const auto weight =
      weighted ? batch.add<float>(ranking_gr::kExampleWeight, {examples}) : std::span<float>();
  const auto token_offsets = batch.values<std::int64_t>(ranking_gr::kOffsets);
  const auto token_names = batch.values<std::int64_t>(ranking_gr::kTokenName);
  std::size_t q = 0, r = 0;
  event = 0;
  for (std::size_t b = 0; b < static_cast<std::size_t>(n); ++b) {
    event += static_cast<std::size_t>(samples.events_of(b));
    const std::int64_t of_sample = samples.candidates[b];
    std::int64_t t = token_offsets[b + 1] - of_sample * per_event;
    for (std::size_t e = event - static_cast<std::size_t>(of_sample); e < event; ++e) {
      if (samples.event_rankable[e] != 0) {
        example[r] = static_cast<std::int32_t>(all ? static_cast<std::size_t>(t) : q);
        user[r] = samples.user[b];
        position[r] = samples.position[b];
        if (weighted) weight[r] = samples.event_weight[e];
        label[r++] = samples.event_label[e];
      }
      for (std::int64_t i = 0; i < per_event; ++i, ++t, ++q) {
        if (all) continue;
        token[q] = static_cast<std::int32_t>(t);
        name[q] = token_names[static_cast<std::size_t>(t)];
      }
    }
    if (!all) offsets[b + 1] = static_cast<std::int64_t>(q);
  }
}

}  // namespace hstu
