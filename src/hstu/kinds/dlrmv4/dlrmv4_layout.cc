#include "hstu/kinds/dlrmv4/dlrmv4_layout.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hstu/model/draws.h"
#include "hstu/model/layer_flops.h"

namespace hstu {
namespace {

// The row of each action mask that occurs in the histories, and those masks in ascending order.
std::array<std::int32_t, 256> action_rows_of(const Samples& samples, std::vector<std::uint8_t>* actions) {
  std::array<bool, 256> seen{};
  for (const std::uint8_t action : samples.history_action) seen[action] = true;
  std::array<std::int32_t, 256> row{};
  for (std::size_t a = 0; a < seen.size(); ++a) {
    if (!seen[a]) continue;
    row[a] = static_cast<std::int32_t>(actions->size());
    actions->push_back(static_cast<std::uint8_t>(a));
  }
  return row;
}

}  // namespace

bool has_shared_histories(const Batch& batch) {
  return static_cast<std::int64_t>(batch.values<std::int32_t>(dlrmv4::kCandidate).size()) > batch.samples;
}

std::string candidate_column(std::string_view attribute) {
  return "candidate." + std::string(attribute);
}

std::int32_t position_row(std::int64_t n, std::int64_t length, std::int64_t context, std::int64_t positions) {
  const std::int64_t high = length - 1;
  const std::int64_t row = n < context ? n : high - std::min(n, high) + context;
  return static_cast<std::int32_t>(std::min(row, positions - 1));
}

std::int32_t time_bucket_row(std::int64_t query_time, std::int64_t time, std::int64_t buckets) {
  const double seconds = std::max(static_cast<double>(query_time - time), 1e-6);
  return static_cast<std::int32_t>(std::min(std::sqrt(seconds / 60), static_cast<double>(buckets)));
}

std::array<double, 4> clock_features(std::int64_t time, double circle_constant) {
  const double hour = std::floor(static_cast<double>(time) / 3600);
  const double day = std::floor(static_cast<double>(time) / 86400);
  const double hour_angle = (hour - 24 * std::floor(hour / 24)) / 24 * 2 * circle_constant;
  const double day_angle = (day - 7 * std::floor(day / 7)) / 7 * 2 * circle_constant;
  return {std::cos(hour_angle), std::sin(hour_angle), std::cos(day_angle), std::sin(day_angle)};
}

std::int64_t sequence_work(std::int64_t length, const Dlrmv4Config& config) {
  const HstuLayerConfig layer{config.dim, config.heads, config.head_dim};
  const SampleMask mask = causal_mask(length);
  return config.layers * layer_flops(layer, mask, mask.n).forward();
}

void Dlrmv4Layout::lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const {
  const std::int64_t n = samples.count, history = samples.history_offsets.back(),
                     candidates = std::ssize(samples.candidate_item);
  batch.tokens = history + n * config_.context + candidates;
  const std::int64_t features = 1 + config_.attributes;  // of items
  batch.reserve(
      5 * Batch::column_bytes<std::int32_t>(batch.tokens) + Batch::column_bytes<std::int64_t>(batch.tokens) +
      2 * features * Batch::column_bytes<std::int64_t>(static_cast<std::int64_t>(samples.items.size())) +
      (18 + 2 * config_.context) * Batch::column_bytes<std::int64_t>(4 * candidates + 256));
  add_sample_columns(samples, batch);
  add_feature_columns(samples, features_, scratch, batch);
  add_tokens(samples, batch);
  add_candidates(samples, batch);
}

std::int64_t Dlrmv4Layout::query_time(const Samples& samples, std::size_t sample) const {
  const std::int64_t begin = samples.history_offsets[sample], end = samples.history_offsets[sample + 1];
  const bool last_event = config_.query_time == QueryTime::last_event && end > begin;
  return last_event ? samples.history_time[static_cast<std::size_t>(end - 1)]
                    : samples.candidate_time[sample];
}

void Dlrmv4Layout::add_tokens(const Samples& samples, Batch& batch) const {
  const std::int64_t n = samples.count, context = config_.context, tokens = batch.tokens;
  std::vector<std::uint8_t> masks;
  const auto row_of_action = action_rows_of(samples, &masks);
  const auto target_row = static_cast<std::int32_t>(masks.size());
  const auto actions = batch.add<std::uint8_t>(dlrmv4::kActions, {target_row});
  std::copy(masks.begin(), masks.end(), actions.begin());

  const auto offsets = batch.add<std::int64_t>(dlrmv4::kOffsets, {n + 1});
  const auto work = batch.add<std::int64_t>(kWorkColumn, {n});
  const auto item = batch.add<std::int32_t>(index_column(features_.item.name), {tokens});
  const auto context_row = batch.add<std::int32_t>(dlrmv4::kContext, {tokens});
  const auto action = batch.add<std::int32_t>(dlrmv4::kAction, {tokens});
  const auto position = batch.add<std::int32_t>(dlrmv4::kPosition, {tokens});
  const auto bucket = batch.add<std::int32_t>(dlrmv4::kTimeBucket, {tokens});
  const auto name = batch.add<std::int64_t>(dlrmv4::kTokenName, {tokens});
  offsets[0] = 0;
  std::size_t t = 0;
  for (std::int64_t b = 0; b < n; ++b) {
    const auto sample = static_cast<std::size_t>(b);
    const std::int64_t begin = samples.history_offsets[sample], end = samples.history_offsets[sample + 1];
    const std::int64_t candidates = samples.candidates_of(sample), before = context + (end - begin),
                       length = before + candidates, query = query_time(samples, sample);
    for (std::int64_t i = 0; i < length; ++i, ++t) {
      std::int64_t time = 0;  // contextual tokens have time 0: an absolute-time signal
      item[t] = context_row[t] = action[t] = -1;
      if (i < context) {
        context_row[t] = static_cast<std::int32_t>(i * n + b);
      } else if (i < before) {
        const auto h = static_cast<std::size_t>(begin + i - context);
        item[t] = samples.history_item[h];
        action[t] = row_of_action[samples.history_action[h]];
        time = samples.history_time[h];
      } else {
        item[t] =
            samples.candidate_item[static_cast<std::size_t>(samples.candidate_begin(sample) + i - before)];
        action[t] = target_row;
        time = query;
      }
      position[t] = position_row(std::min(i, before), before + 1, context, config_.positions);
      bucket[t] = time_bucket_row(query, time, config_.time_buckets);
      name[t] = token_name(samples.position[sample], i);
    }
    offsets[sample + 1] = static_cast<std::int64_t>(t);
    work[sample] = sequence_work(length, config_);
    batch.longest = std::max(batch.longest, before + 1);
  }
}

void Dlrmv4Layout::add_candidates(const Samples& samples, Batch& batch) const {
  const std::int64_t n = std::ssize(samples.candidate_item);
  const auto samples_count = static_cast<std::size_t>(samples.count);
  const auto token = batch.add<std::int32_t>(dlrmv4::kCandidate, {n});
  const auto item = batch.add<std::int32_t>(dlrmv4::kCandidateItem, {n});
  const auto name = batch.add<std::int64_t>(dlrmv4::kCandidateName, {n});
  const auto offsets = batch.add<std::int64_t>(dlrmv4::kCandidateOffsets, {samples.count + 1});
  const auto label = batch.add<float>(dlrmv4::kCandidateLabel, {n});
  const auto weight = batch.add<float>(dlrmv4::kCandidateWeight, {n});
  const auto token_offsets = batch.values<std::int64_t>(dlrmv4::kOffsets);
  const auto names = batch.values<std::int64_t>(dlrmv4::kTokenName);
  for (std::size_t b = 0; b < samples_count; ++b) {
    offsets[b] = samples.candidate_begin(b);
    const std::int64_t first = token_offsets[b + 1] - samples.candidates_of(b);
    const float of_sample =
        samples.event_weight.empty() ? 1.0f : samples.event_weight[samples.event_begin(b + 1) - 1];
    for (std::int64_t i = 0; i < samples.candidates_of(b); ++i) {
      const auto c = static_cast<std::size_t>(offsets[b] + i);
      token[c] = static_cast<std::int32_t>(first + i);
      item[c] = samples.candidate_item[c];
      name[c] = names[static_cast<std::size_t>(first + i)];
      label[c] = i == 0 ? samples.label[b] : 0;
      weight[c] = of_sample;
    }
  }
  offsets[samples_count] = n;
  if (has_shared_histories(batch)) {
    const auto targets = batch.add<std::int32_t>(dlrmv4::kTargets, {samples.count});
    for (std::size_t b = 0; b < samples_count; ++b)
      targets[b] = static_cast<std::int32_t>(samples.candidates_of(b));
  }
  with_float_type(type_, [&]<typename T>() {
    const auto clock = batch.add<T>(dlrmv4::kClock, {n, 4});
    std::size_t at = 0;
    for (std::size_t b = 0; b < samples_count; ++b) {
      const auto features = clock_features(query_time(samples, b), config_.circle_constant);
      for (std::int64_t c = 0; c < samples.candidates_of(b); ++c)
        for (const double feature : features) clock[at++] = static_cast<T>(feature);
    }
  });
  for (const FeatureSpec& attribute : features_.attributes) {
    const auto row = batch.add<std::int32_t>(candidate_column(attribute.name), {n});
    const auto of_item = batch.values<std::int32_t>(index_column(attribute.name));
    for (std::size_t c = 0; c < row.size(); ++c)
      row[c] = of_item[static_cast<std::size_t>(samples.candidate_item[c])];
  }
}

}  // namespace hstu
