// Requests to a scorer in this process: an exported model, random histories and candidates, no network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

struct ScoreBenchmarkOptions {
  Path model = {};  // a run or an export
  std::string device = {};
  std::vector<std::int64_t> histories{1024};  // events of each user
  std::vector<std::int64_t> items{100};  // candidates, other ones each time; kind retrieval: the best of all
  std::vector<std::int64_t> users{1};    // requests that are answered together
  std::int64_t new_events = 0;           // last ones of each user that the request before had not
  std::int64_t cache_bytes = std::int64_t{8} << 30;
  std::int64_t ids = 1000;  // items are below it
  std::int64_t rounds = 50;
  std::int64_t clients = 0;  // threads that ask a queue at the same time; 0: none
  bool operations = false;
};

// {"device", "gpu", "rows": for each history, number of items and number of users {"history", "items",
// "users", "plain", "cached"}}; the two, without and with a cache that has the histories, are {"p50_ms",
// "p99_ms", "min_ms"} from requests in memory to their scores; "requests_per_s", of all
// rounds together, and with `clients` "queued_requests_per_s" of theirs; of these times the medians of what
// the host spends until the batch is complete, "batch_ms", and until the device has its work, "launches_ms";
// "replayed", the part of the passes that were one call; and with `operations` "operations_ms": means of each
// kind of operation on the device where a mark follows every one. "cached" is null for models that keep
// nothing. UsageError for more `items` than `ids`.
Json benchmark_score(const ScoreBenchmarkOptions& options);

}  // namespace hstu
