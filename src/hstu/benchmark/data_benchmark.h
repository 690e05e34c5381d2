// The data path on a dataset of one's own: what `./dev bench data` times against polars and NumPy.
#pragma once

#include <cstdint>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

struct DataBenchmarkOptions {
  Path dataset;
  std::int64_t samples = 8192;  // assembled into batches, at least
  std::int64_t batch_size = 1024;
  std::int64_t history = 4086;  // also the events that a user must have before an anchor
};

// Opens the dataset and assembles batches on one core, windows of a day in order from the middle one on:
// interleaved histories, every attribute of the dataset, and eight contextual features as the DLRMv4
// reference has them where the dataset has its columns. Gives {"events", "anchors", "index_s" (building the
// anchor index; 0 if it exists already), "open_ms" (opening and the first batch), "samples",
// "samples_per_s", "tokens_per_sample", "items_per_batch", "peak_rss_mib"}.
Json benchmark_data(const DataBenchmarkOptions& options);

}  // namespace hstu
