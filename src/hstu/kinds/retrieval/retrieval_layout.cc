#include "hstu/kinds/retrieval/retrieval_layout.h"

#include <algorithm>

#include "hstu/model/draws.h"

namespace hstu {
namespace {

// Event `h` of all histories, as an event that the one before it predicts; past the end of sample b: its
// candidate.
struct NextEvent {
  std::int32_t row;
  std::int64_t time;
};

NextEvent next_event(const Samples& samples, std::size_t b, std::int64_t h) {
  if (h == samples.history_offsets[b + 1])
    return {samples.candidate_item[static_cast<std::size_t>(samples.candidate_begin(b))],
            samples.candidate_time[b]};
  const auto i = static_cast<std::size_t>(h);
  return {samples.history_item[i], samples.history_time[i]};
}

// Of a batch whose samples ask for the event after their last token alone.
void add_queries(const Samples& samples, Batch& batch) {
  const auto n = static_cast<std::size_t>(samples.count);
  std::int64_t queries = 0;
  for (std::size_t b = 0; b < n; ++b)
    queries += samples.history_offsets[b + 1] > samples.history_offsets[b] ? 1 : 0;
  const auto token = batch.add<std::int32_t>(retrieval::kQuery, {queries});
  const auto name = batch.add<std::int64_t>(retrieval::kQueryName, {queries});
  const auto offsets = batch.add<std::int64_t>(retrieval::kQueryOffsets, {samples.count + 1});
  const auto time = batch.add<std::int64_t>(retrieval::kLastQueryTime, {queries});
  const auto names = batch.values<std::int64_t>(retrieval::kTokenName);
  offsets[0] = 0;
  for (std::size_t b = 0; b < n; ++b) {
    const std::int64_t end = samples.history_offsets[b + 1];
    const auto q = static_cast<std::size_t>(offsets[b]);
    offsets[b + 1] = offsets[b];
    if (end == samples.history_offsets[b]) continue;
    token[q] = static_cast<std::int32_t>(end - 1);
    name[q] = names[static_cast<std::size_t>(end - 1)];
    time[q] = samples.candidate_time[b];
    ++offsets[b + 1];
  }
}

void add_targets(const Samples& samples, Batch& batch) {
  const auto n = static_cast<std::size_t>(samples.count);
  const bool all = samples.predicts_next_events;
  const std::vector<std::int64_t>& offsets = samples.history_offsets;
  const std::int64_t targets =
      all ? offsets.back() : std::ssize(batch.values<std::int32_t>(retrieval::kQuery));
  const auto id = batch.add<std::int64_t>(retrieval::kTarget, {targets});
  const auto row = batch.add<std::int32_t>(retrieval::kTargetRow, {targets});
  const auto sample = batch.add<std::int32_t>(retrieval::kTargetSample, {targets});
  const bool weighted = !samples.event_weight.empty();
  const auto weight = weighted ? batch.add<float>(retrieval::kTargetWeight, {targets}) : std::span<float>();
  std::size_t r = 0;
  for (std::size_t b = 0; b < n; ++b) {
    const std::int64_t end = offsets[b + 1], begin = all ? offsets[b] : std::max(offsets[b], end - 1);
    for (std::int64_t h = begin; h < end; ++h, ++r) {
      row[r] = next_event(samples, b, h + 1).row;
      id[r] = samples.items[static_cast<std::size_t>(row[r])];
      sample[r] = static_cast<std::int32_t>(b);
      if (weighted)
        weight[r] =
            samples.event_weight[samples.event_begin(b) + static_cast<std::size_t>(h + 1 - offsets[b])];
    }
  }
}

std::int64_t attribute_bytes(const Samples& samples) {
  const std::int64_t items = std::ssize(samples.items);
  std::int64_t bytes = 0;
  for (std::size_t a = 0; a < samples.attributes.size(); ++a) {
    bytes += Batch::column_bytes<std::int32_t>(items);
    if (samples.catalogue_attributes == nullptr) {
      bytes += Batch::column_bytes<std::int64_t>(items);
    } else {
      const CatalogueAttribute& all = (*samples.catalogue_attributes)[a];
      bytes += Batch::column_bytes<std::int64_t>(std::ssize(all.distinct)) +
               Batch::column_bytes<std::int32_t>(std::ssize(all.number));
    }
  }
  return bytes;
}

std::int64_t context_bytes(const Samples& samples) {
  return std::ssize(samples.context) * (Batch::column_bytes<std::int32_t>(samples.history_offsets.back()) +
                                        2 * Batch::column_bytes<std::int64_t>(samples.count));
}

}  // namespace

void RetrievalLayout::lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const {
  batch.tokens = samples.history_offsets.back();
  batch.reserve(attribute_bytes(samples) + context_bytes(samples) +
                6 * Batch::column_bytes<std::int32_t>(batch.tokens) +
                4 * Batch::column_bytes<std::int64_t>(batch.tokens) +
                2 * Batch::column_bytes<std::int64_t>(std::ssize(samples.items)) +
                Batch::column_bytes<std::int32_t>((1 + drawn_.own) * batch.tokens) +
                (has_pool_ ? 5 * Batch::column_bytes<std::int64_t>(std::ssize(samples.items)) : 0) +
                13 * Batch::column_bytes<std::int64_t>(samples.count + 1));
  add_sample_columns(samples, batch);
  add_feature_columns(samples, features_, scratch, batch);
  add_tokens(samples, batch);
  add_contexts(samples, batch);
  if (!samples.predicts_next_events) add_queries(samples, batch);
  add_targets(samples, batch);
  if (samples.predicts_next_events && (has_pool_ || drawn_.any())) add_drawn(samples, batch);
}

void RetrievalLayout::add_contexts(const Samples& samples, Batch& batch) const {
  for (const FeatureSpec& feature : features_.context) {
    const auto rows = batch.add<std::int32_t>(retrieval::token_context_column(feature.name), {batch.tokens});
    const auto of_samples = batch.values<std::int32_t>(index_column(feature.name));
    for (std::size_t b = 0; b < of_samples.size(); ++b)
      std::fill(rows.begin() + samples.history_offsets[b], rows.begin() + samples.history_offsets[b + 1],
                of_samples[b]);
  }
}

void RetrievalLayout::add_drawn(const Samples& samples, Batch& batch) const {
  batch.add<std::int64_t>(retrieval::kCatalogueSize, {1})[0] = samples.catalogue_size;
  if (drawn_.own > 0) {
    const auto drawn = batch.add<std::int32_t>(kSampledIndexColumn, {batch.tokens, 1 + drawn_.own});
    auto from = samples.drawn_item.begin();
    auto to = drawn.begin();
    for (const std::int32_t row : batch.values<std::int32_t>(retrieval::kTargetRow)) {
      *to++ = row;
      to = std::copy(from, from + drawn_.own, to);
      from += drawn_.own;
    }
  }
  if (!has_pool_) return;
  std::vector<std::int64_t> drawn;
  for (const std::int32_t row : samples.shared_item)
    drawn.push_back(samples.items[static_cast<std::size_t>(row)]);
  const PoolItems pool =
      pool_items(batch.values<std::int64_t>(retrieval::kTarget), {}, drawn, samples.frequencies);
  add_pool_columns(pool, samples.items, batch);
  if (pool.ids.empty()) batch.add<float>(kPoolFrequencyColumn, {0});  // which no item has given
}

void RetrievalLayout::add_tokens(const Samples& samples, Batch& batch) const {
  const std::int64_t tokens = batch.tokens;
  const auto offsets = batch.add<std::int64_t>(retrieval::kOffsets, {samples.count + 1});
  const auto item = batch.add<std::int32_t>(index_column(features_.item.name), {tokens});
  const auto position = batch.add<std::int32_t>(retrieval::kPosition, {tokens});
  const auto name = batch.add<std::int64_t>(retrieval::kTokenName, {tokens});
  const auto key_time = batch.add<std::int64_t>(retrieval::kKeyTime, {tokens});
  const auto query_time = batch.add<std::int64_t>(retrieval::kQueryTime, {tokens});
  std::copy(samples.history_offsets.begin(), samples.history_offsets.end(), offsets.begin());
  std::copy(samples.history_item.begin(), samples.history_item.end(), item.begin());
  std::copy(samples.history_time.begin(), samples.history_time.end(), key_time.begin());
  if (actions_)
    std::copy(samples.history_action.begin(), samples.history_action.end(),
              batch.add<std::int32_t>(retrieval::kAction, {tokens}).begin());
  for (std::size_t b = 0; b < static_cast<std::size_t>(samples.count); ++b) {
    const std::int64_t begin = samples.history_offsets[b], end = samples.history_offsets[b + 1];
    for (std::int64_t h = begin; h < end; ++h) {
      const auto t = static_cast<std::size_t>(h);
      const std::int64_t place = samples.known_of(b) + h - begin;
      position[t] = static_cast<std::int32_t>(place);
      name[t] = token_name(samples.position[b], place);
      query_time[t] = next_event(samples, b, h + 1).time;
    }
    batch.longest = std::max(batch.longest, end - begin);
  }
}

}  // namespace hstu
