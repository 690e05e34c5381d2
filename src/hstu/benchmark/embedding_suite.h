// NVIDIA's benchmark of DynamicEmb (corelib/dynamicemb/benchmark/benchmark_batched_dynamicemb_tables.py of
// recsys-examples) on the tables of this program: ids of a power law, one embedding for each id.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/json.h"

namespace hstu {

struct EmbeddingSuiteOptions {
  std::string device = "auto";
  std::vector<std::string> cases = {};  // words of embedding_suite_cases(); empty: all
  std::int64_t tables = 10;
  std::int64_t dim = 128;
  std::int64_t ids = 1'048'570;  // of a step, over all tables
  std::int64_t device_rows = std::int64_t{1}
                             << 24;  // nominal, of all tables together, where all are on the device
  std::int64_t host_rows = std::int64_t{1} << 28;  // in the other cases
  std::int64_t batches = 100;                      // different ones
  double power = 1.05;
  double product_ms = 5;  // beside which "cache_0.8_adam_hidden" prefetches
  std::uint64_t seed = 1;
};

// "device_sgd", "device_adam", "cache_1.0_adam" ...: where the rows are, the cache's room as a share of all
// rows that occur, the optimizer.
std::vector<std::string> embedding_suite_cases();

// Every case makes a pass over the batches that is not timed, one that trains, and one that evaluates. Gives
// "device" and "cases", each with its name, the medians "train_ms", "train_ms_p10", "train_ms_p90",
// "evaluate_ms" of whole steps by the host's clock, "distinct" (ids a step), "rows", "stages" (medians by the
// device's events: "ms", "gb_s" of the least bytes) and, behind a cache, "cache_rows", "hits" (share of a
// step's rows), "link_gb" (a step, both ways) and "prefetch_ms" (the time of bringing the next batch's rows,
// after which its step finds them: train_ms is then without it). "cache_0.8_adam_hidden" has products in
// place of a model, and prefetches beside them: "model_ms" (the products alone), and "exposed", by how much
// prefetches beside them make them longer, as a share of "prefetch_ms". Distinct ids are made before: the
// loader's threads do that.
Json benchmark_embedding_suite(const EmbeddingSuiteOptions& options);

// The result as a table for people.
std::string embedding_suite_text(const Json& result);

}  // namespace hstu
