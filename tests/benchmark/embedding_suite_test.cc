#include "hstu/benchmark/embedding_suite.h"

#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

EmbeddingSuiteOptions small() {
  EmbeddingSuiteOptions options;
  options.device = "host";
  options.tables = 2;
  options.ids = 2000;
  options.dim = 4;
  options.device_rows = 4000;
  options.host_rows = 40'000;
  options.batches = 4;
  return options;
}

TEST(EmbeddingSuite, MeasuresEveryCase) {
  const Json result = benchmark_embedding_suite(small());
  ASSERT_EQ(result.at("cases").size(), embedding_suite_cases().size());
  for (const Json& one : result.at("cases")) {
    EXPECT_GT(one.at("train_ms"), 0.0);
    EXPECT_EQ(one.at("stages").size(), 5u) << one;
  }
  const auto hits = [&](std::size_t i) { return result.at("cases")[i].at("hits").get<double>(); };
  EXPECT_EQ(hits(3), 1.0) << "a cache for all rows";
  EXPECT_LT(hits(5), 1.0);
  EXPECT_GT(hits(6), hits(5)) << "with prefetches";
  EXPECT_NE(embedding_suite_text(result).find("cache_0.8_adam_prefetch"), std::string::npos);
}

TEST(EmbeddingSuite, RefusesACaseThatDoesNotExist) {
  EmbeddingSuiteOptions options = small();
  options.cases = {"device_adm"};
  EXPECT_THROW(benchmark_embedding_suite(options), UsageError);
}

}  // namespace
}  // namespace hstu
