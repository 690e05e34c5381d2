// The work over a catalogue of random items: softmax of training, ranks of evaluation, first items of
// serving.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/json.h"
#include "hstu/options/options.h"

namespace hstu {

struct CatalogueBenchmarkOptions {
  std::string device = "auto";
  std::int64_t items = 100'000, width = 128;
  std::int64_t positions = 8192;  // of the softmax; 0: leave it out
  std::int64_t queries = 8192;    // whose first items are found, and whose targets are ranked; 0: neither
  std::int64_t k = 200;
  std::int64_t excluded = 50;             // items of each query
  Precision precision = Precision::bf16;  // of the softmax; on the host fp32
  std::int64_t rounds = 20;
};

// Unit rows and vectors, a temperature of 0.05. "softmax": both passes, in ms, and "peak_mib" of what the
// pass takes beside the rows, the vectors and their gradients. "top": exact first k items without those
// excluded, in ms of a call with vectors in host memory and lists there; "ranks": the same for ranks of
// targets. Each has the median, the least and the most of `rounds`.
Json benchmark_catalogue(const CatalogueBenchmarkOptions& options);

}  // namespace hstu
