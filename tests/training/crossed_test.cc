// Options that are tested alone elsewhere, each with each: none of them changes a byte of a run over two
// ranks.
#include "hstu/rows/row_record.h"
#include "training/ranked_run.h"
#include "training/ranking_options.h"

namespace hstu::testing {
namespace {

class CrossedRankingGr : public RankedRun {
 protected:
  CrossedRankingGr() {
    use_ranking(options_);
    options_.evaluation.every_data_fraction = 0.3;
    options_.sparse.kind = RowOptimizerKind::adam;
    options_.ranks.gpu_messages = GpuMessages::host;
    for (const char* name : {"item", "user"}) options_.tables.by_name[name].dtype = DType::bf16;
    options_.tables.by_name["user"].ranks = "column";
  }

  // The cache of users has room for the rows of two steps: rows leave it.
  void use_cache(bool cache) {
    for (const auto& [name, rows, columns] : {std::tuple("item", 12, 8), {"user", 11, 4}}) {
      TableSection& table = options_.tables.by_name[name];
      const RowShape shape{.dim = columns, .state_width = 2 * columns + 1, .dtype = DType::bf16};
      table.place = cache ? "cache" : "";
      table.device_memory = cache ? std::to_string(rows * record_bytes(shape)) : "";
    }
  }

  // Resumes with the other cache and another pipeline than it began with.
  void expect_one_model() {
    const std::int64_t steps = options_.training.max_steps;
    for (const std::int64_t candidates : {0, 10}) {
      ranking_gr_of(options_).candidates = candidates;
      const std::string first = fmt::format("{} candidates", candidates);
      use_cache(false);
      options_.ranks.pipeline = Pipeline::plain;
      run_on(2, first);
      ASSERT_EQ(log(first, "end").back().at("step"), steps);
      for (const bool cache : {false, true}) {
        for (const auto& [word, pipeline] : kPipelines) {
          const std::string name = fmt::format("{}, {}, cache {}", first, word, cache);
          use_cache(cache);
          options_.ranks.pipeline = pipeline;
          options_.ranks.overlap = pipeline != Pipeline::sparse;
          run_on(2, name);
          expect_same_tensors(name, first);
          const Json last = log(name, "train").back();
          ASSERT_EQ(last.contains("caches"), cache) << name;
          if (cache) {
            EXPECT_GT(last.at("caches").at("user").at("bytes_out"), 0) << name;
          }

          options_.training.max_steps = 5;
          run_on(2, name + ", parts");
          options_.training.max_steps = steps;
          use_cache(!cache);
          options_.ranks.pipeline = pipeline == Pipeline::sparse ? Pipeline::plain : Pipeline::sparse;
          run_on(2, name + ", parts", true);
          EXPECT_EQ(learner_tensors(name + ", parts"), learner_tensors(first)) << name;
        }
      }
    }
    EXPECT_NE(learner_tensors("0 candidates"), learner_tensors("10 candidates"));
  }
};

TEST_F(CrossedRankingGr, CachesPipelinesAndRestartsChangeNoByte) {
  expect_one_model();
}

TEST_F(CrossedRankingGr, CachesPipelinesAndRestartsChangeNoByteOnGpusInBf16) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  options_.device = "cuda";
  options_.precision = Precision::bf16;
  expect_one_model();
}

}  // namespace
}  // namespace hstu::testing
