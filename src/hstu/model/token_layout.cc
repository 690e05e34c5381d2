#include "hstu/model/token_layout.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hstu {
namespace {

// The row of each action mask that occurs in the histories, and those masks in ascending order.
std::array<std::int32_t, 256> action_rows_of(const Batch& batch, std::vector<std::uint8_t>* actions) {
  std::array<bool, 256> seen{};
  for (const std::uint8_t action : batch.history_action) seen[action] = true;
  std::array<std::int32_t, 256> row{};
  for (std::size_t a = 0; a < seen.size(); ++a) {
    if (!seen[a]) continue;
    row[a] = static_cast<std::int32_t>(actions->size());
    actions->push_back(static_cast<std::uint8_t>(a));
  }
  return row;
}

}  // namespace

std::int32_t position_row(std::int64_t n, std::int64_t length, std::int64_t context, std::int64_t positions) {
  const std::int64_t high = length - 1;
  const std::int64_t row = n < context ? n : high - std::min(n, high) + context;
  return static_cast<std::int32_t>(std::min(row, positions - 1));
}

std::int32_t time_bucket_row(std::int64_t query_time, std::int64_t time, std::int64_t buckets) {
  const double seconds = std::max(static_cast<double>(query_time - time), 1e-6);
  return static_cast<std::int32_t>(std::min(std::sqrt(seconds / 60), static_cast<double>(buckets)));
}

TokenLayout token_layout(const Batch& batch, const ModelConfig& config) {
  TokenLayout layout;
  const std::int64_t samples = batch.samples, context = config.context;
  const std::int64_t history = batch.history_offsets.back();
  const auto tokens = static_cast<std::size_t>(history + samples * (context + 1));
  const auto row_of_action = action_rows_of(batch, &layout.actions);
  const auto target_row = static_cast<std::int32_t>(layout.actions.size());

  std::vector<std::int32_t> context_row(tokens, -1), item(tokens, -1), action(tokens, -1), position(tokens),
      bucket(tokens), candidate;
  layout.offsets.push_back(0);
  std::size_t t = 0;
  for (std::int64_t b = 0; b < samples; ++b) {
    const auto sample = static_cast<std::size_t>(b);
    const std::int64_t begin = batch.history_offsets[sample], end = batch.history_offsets[sample + 1];
    const std::int64_t length = context + (end - begin) + 1;
    const bool last_event = config.query_time == "last_event" && end > begin;
    const std::int64_t query =
        last_event ? batch.history_time[static_cast<std::size_t>(end - 1)] : batch.candidate_time[sample];
    layout.query_time.push_back(query);
    for (std::int64_t n = 0; n < length; ++n, ++t) {
      std::int64_t time = 0;  // contextual tokens stand at time 0: an absolute-time signal
      if (n < context) {
        context_row[t] = static_cast<std::int32_t>(n * samples + b);
      } else if (n + 1 < length) {
        const auto h = static_cast<std::size_t>(begin + n - context);
        item[t] = batch.history_item[h];
        action[t] = row_of_action[batch.history_action[h]];
        time = batch.history_time[h];
      } else {
        item[t] = batch.candidate_item[sample];
        action[t] = target_row;
        time = query;
      }
      position[t] = position_row(n, length, context, config.positions);
      bucket[t] = time_bucket_row(query, time, config.time_buckets);
    }
    candidate.push_back(static_cast<std::int32_t>(t) - 1);
    layout.offsets.push_back(static_cast<std::int64_t>(t));
  }
  layout.context = ops::row_index(std::move(context_row));
  layout.item = ops::row_index(std::move(item));
  layout.action = ops::row_index(std::move(action));
  layout.position = ops::row_index(std::move(position));
  layout.time_bucket = ops::row_index(std::move(bucket));
  layout.candidate = ops::row_index(std::move(candidate));
  return layout;
}

}  // namespace hstu
