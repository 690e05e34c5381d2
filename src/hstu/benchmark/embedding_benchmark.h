// Embedding tables on the host: lookup, gather, update and the end of a step, over ids of a power law.
#pragma once

#include <cstdint>

#include "hstu/base/json.h"
#include "hstu/embedding/row_limits.h"

namespace hstu {

struct EmbeddingBenchmarkOptions {
  std::int64_t tables = 26;
  std::int64_t ids = 1'000'000;  // of a step, over all tables
  std::int64_t dim = 64;
  std::int64_t rows = 1'000'000;  // distinct ids of a table, at most
  std::int64_t capacity = 0;      // of a table; 0: no limit
  Evict evict = Evict::lru;       // with a capacity
  std::int64_t admit_after = 0;
  double power = 1.05;  // of the power law
  std::int64_t steps = 10, warmup = 10;
  std::uint64_t seed = 1;
};

// Ids follow the power law by their rank, in an order mixed by a hash; rows are updated by rowwise Adagrad.
// Gives the medians "lookup_ms", "gather_ms", "update_ms", "end_ms" and "step_ms" of a step's parts,
// "step_cpu_ms" of all threads, the "distinct" ids of a step on average, "rows", "bytes_per_row" (everything
// a table allocates) and "payload_bytes" (values and state), "hits" (share of the distinct ids; null without
// limits), "evicted" and "peak_rss_mib".
Json benchmark_embedding(const EmbeddingBenchmarkOptions& options);

}  // namespace hstu
