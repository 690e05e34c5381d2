#include "hstu/benchmark/embedding_benchmark.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(EmbeddingBenchmark, CountsRowsAndWhatHappenedToThem) {
  EmbeddingBenchmarkOptions options;
  options.tables = 3;
  options.ids = 6000;
  options.dim = 4;
  options.rows = 20'000;
  options.steps = options.warmup = 3;
  const Json free = benchmark_embedding(options);
  EXPECT_TRUE(free.at("hits").is_null());
  EXPECT_EQ(free.at("evicted"), 0);
  options.capacity = 500;
  const Json limited = benchmark_embedding(options);
  EXPECT_EQ(limited.at("rows"), 1500);
  EXPECT_GT(free.at("rows"), limited.at("rows"));
  EXPECT_GT(limited.at("evicted"), 0);
  EXPECT_EQ(limited.at("distinct"), free.at("distinct")) << "the same ids";
  EXPECT_GT(limited.at("hits"), 0.0);
  EXPECT_LT(limited.at("hits"), 1.0);
}

}  // namespace
}  // namespace hstu
