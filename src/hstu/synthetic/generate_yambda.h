// Synthetic events in the schema and under the file names of the public Yambda data set.
#pragma once

#include "hstu/synthetic/generate_options.h"
#include "hstu/synthetic/generate_truth.h"

namespace hstu {

// Writes the folder options.output, completely or not at all:
//
//   multi_event.parquet           uid, timestamp, item_id, is_organic, played_ratio_pct,
//                                 track_length_seconds, event_type; ordered by (uid, timestamp), ties as
//                                 EventType
//   artist_item_mapping.parquet   item_id, artist_id; the last row of an item has the signal's artist
//   album_item_mapping.parquet    item_id, album_id; likewise
//   truth.json                    parameters, counts, oracle, baseline
//   truth_last_day.parquet        uid, timestamp, item_id, label, probability of the last day's listens
//
// The bytes depend on the options except `threads` and `output`. Memory: about two million events, the
// catalogue, and the last day's listens. Throws UsageError for options out of range and for an existing
// output. Returns the content of truth.json.
Truth generate_yambda(const GenerateOptions& options);

}  // namespace hstu
