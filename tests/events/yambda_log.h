// Small logs in Yambda's layout for tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "columns/parquet_files.h"

namespace hstu {

struct YambdaEvent {
  std::int64_t uid, timestamp, item_id;
  std::string event_type;
  std::optional<std::int64_t> played_ratio_pct = std::nullopt;
  std::int64_t is_organic = 0;
  std::optional<std::int64_t> track_length_seconds = std::nullopt;
};

template <typename ArrowType, typename Field>
Array field_array(const std::vector<YambdaEvent>& events, Field YambdaEvent::*field) {
  std::vector<std::optional<typename ArrowType::c_type>> values;
  for (const YambdaEvent& event : events) {
    const std::optional<std::int64_t> value = event.*field;
    values.push_back(value ? std::optional(static_cast<typename ArrowType::c_type>(*value)) : std::nullopt);
  }
  return array<ArrowType>(values);
}

// The columns of multi_event.parquet, with Yambda's types.
inline NamedArrays yambda_columns(const std::vector<YambdaEvent>& events) {
  std::vector<std::optional<std::string>> types;
  for (const YambdaEvent& event : events) types.emplace_back(event.event_type);
  return {
      {"uid", field_array<arrow::UInt32Type>(events, &YambdaEvent::uid)},
      {"timestamp", field_array<arrow::UInt32Type>(events, &YambdaEvent::timestamp)},
      {"item_id", field_array<arrow::UInt32Type>(events, &YambdaEvent::item_id)},
      {"is_organic", field_array<arrow::UInt8Type>(events, &YambdaEvent::is_organic)},
      {"played_ratio_pct", field_array<arrow::UInt16Type>(events, &YambdaEvent::played_ratio_pct)},
      {"track_length_seconds", field_array<arrow::UInt32Type>(events, &YambdaEvent::track_length_seconds)},
      {"event_type", dictionary(types)}};
}

inline void write_mappings(const Path& folder) {
  write_parquet(folder / "artist_item_mapping.parquet",
                {{"artist_id", array<arrow::UInt32Type>({71, 72, 73, 74})},
                 {"item_id", array<arrow::UInt32Type>({1, 2, 1, 4})}});
  write_parquet(folder / "album_item_mapping.parquet",
                {{"album_id", array<arrow::UInt32Type>({81})}, {"item_id", array<arrow::UInt32Type>({6})}});
}

// A whole input folder.
inline void write_yambda(const Path& folder, const std::vector<YambdaEvent>& events) {
  write_parquet(folder / "multi_event.parquet", yambda_columns(events));
  write_mappings(folder);
}

}  // namespace hstu
