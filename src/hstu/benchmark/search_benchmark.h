// Beam search of the model of semantic ids with random parameters, codes and histories.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/json.h"
#include "hstu/options/options.h"

namespace hstu {

struct SearchBenchmarkOptions {
  std::string device = "auto";
  Precision precision = Precision::bf16;  // on the host fp32
  std::int64_t layers = 8, heads = 8, head_dim = 128;
  std::int64_t levels = 4, codes = 256;  // of a tuple; of each level
  std::int64_t items = 1'000'000;        // with different tuples, or nearly so
  std::int64_t beam = 200;
  std::int64_t users = 1;
  std::int64_t tokens = 256;  // of each history: codes of its items, without the BOS
  std::int64_t rounds = 20;
};

// {"device", "gpu", "precision", the sizes, "search": {"median_ms", "min_ms", "max_ms"} from a batch in host
// memory to lists there, by a search that replays its launches, "launched" the same for one that does not,
// "levels_ms": medians over as many further rounds of the time of each level on the device, the first with
// the histories, "operations_ms": means of each kind of operation where a mark follows every one, and
// "memory_mib" of the pool at its peak}.
Json benchmark_search(const SearchBenchmarkOptions& options);

}  // namespace hstu
