// The plan's figures are those of a real step.
#include "hstu/plan/memory_plan.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/experiment/division.h"
#include "hstu/ops/op.h"
#include "hstu/options/table_options.h"
#include "hstu/plan/largest_part.h"
#include "hstu/plan/table_tiers.h"
#include "hstu/rows/row_record.h"
#include "plan/memory_plan_fixture.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;
using testing::MemoryPlanTest;

TEST_F(MemoryPlanTest, RecomputingNeedsLess) {
  const auto planned = [&] { return plan_memory(options_, {}).activations; };
  const std::int64_t all = planned();
  dlrmv4_of(options_).recompute = {.norm = true, .gate = true};
  EXPECT_LT(planned(), all);
  dlrmv4_of(options_).layers = 6;
  const std::int64_t parts = planned();
  dlrmv4_of(options_).recompute = {.layer = true};
  EXPECT_LT(planned(), parts);
}

// Kernels for GPUs take scratch memory, and bfloat16 halves what is kept for every token.
TEST_F(MemoryPlanTest, DependsOnTheDeviceAndThePrecision) {
  dlrmv4_of(options_).dim = dlrmv4_of(options_).embedding_dim = 64;
  dlrmv4_of(options_).head_dim = 32;
  const Experiment experiment(options_);
  const DryDevice hopper = planned_gpu("h200").device;
  EXPECT_EQ(hopper.major, 9);
  if (!kBuiltWithCuda) GTEST_SKIP() << "built without CUDA";
  const std::int64_t fp32 = plan_memory(options_, hopper).activations;
  EXPECT_GT(fp32, plan_memory(options_, {}).activations);
  options_.precision = Precision::bf16;
  EXPECT_LT(plan_memory(options_, hopper).activations, fp32);
}

TEST_F(MemoryPlanTest, TheLargestPartIsThatOfTheSchedule) {
  const Experiment experiment(options_);
  const auto largest = [&](const RunOptions& options) {
    Loader loader(experiment.samples(), experiment.learner().model->layout(),
                  training_schedule(options, experiment.anchors(), {}),
                  {.division = {.part_tokens = options.training.micro_batch_tokens}});
    std::int64_t tokens = 0;
    while (const auto* part = loader.next()) tokens = std::max(tokens, part->batch.tokens);
    return tokens;
  };
  EXPECT_EQ(plan_memory(options_, {}).tokens, largest(options_));
  options_.training.micro_batch_tokens = 100;
  EXPECT_EQ(plan_memory(options_, {}).tokens, largest(options_));
  EXPECT_LE(largest(options_), 100);
}

TEST_F(MemoryPlanTest, PlansThePartsOfAStep) {
  options_.training.batch_size = 8;
  options_.training.accumulate = 3;
  const auto parts = [&] {
    const TaskData data(options_);
    return largest_part(training_schedule(options_, data.anchors, {}), data.samples,
                        division_of(options_, *data.task.model, 1), 1)
        .parts;
  };
  EXPECT_EQ(parts(), 3);
  const std::int64_t planned = plan_memory(options_, {}).activations;
  options_.training.accumulate = 1;
  EXPECT_LT(plan_memory(options_, {}).activations, planned) << "gradients of rows are kept";
  options_.training.micro_batch_tokens = 1;
  EXPECT_EQ(parts(), 8) << "a sample each";
}

// One sample in a batch, so that without groups a rank has nothing. All layers' activations are halved.
TEST_F(MemoryPlanTest, LongSamplesAreSharedByContextGroups) {
  options_.training.batch_size = 1;
  Dlrmv4Config& model = dlrmv4_of(options_);
  model.layers = 20, model.dim = 128, model.head_dim = 64;
  const std::int64_t alone = plan_memory(options_, {}, 4).activations;
  options_.ranks.context = 2, options_.ranks.context_above = 4;
  const std::int64_t shared = plan_memory(options_, {}, 4).activations;
  EXPECT_LT(shared, 0.7 * static_cast<double>(alone));
  EXPECT_GT(shared, 0.5 * static_cast<double>(alone));
  EXPECT_EQ(plan_memory(options_, {}, 3).activations, alone) << "3 ranks have no such groups";
  model.heads = 1, model.head_dim = 128;
  const std::int64_t gathered = plan_memory(options_, {}, 4).activations;
  EXPECT_GT(gathered, shared) << "each rank has the keys of all tokens";
  EXPECT_LT(gathered, 0.9 * static_cast<double>(alone));
  options_.ranks.context_above = 100;
  EXPECT_EQ(plan_memory(options_, {}, 4).activations, alone);
}

TEST_F(MemoryPlanTest, HasTheEvaluations) {
  options_.evaluation = {};
  const MemoryPlan none = plan_memory(options_, {});
  EXPECT_EQ(none.evaluation.samples + none.evaluation.passes() + none.evaluation.beside(), 0);
  options_.evaluation.holdout.fraction = 0.5;
  options_.evaluation.batch_size = 24;
  const MemoryPlan small = plan_memory(options_, {});
  EXPECT_EQ(small.evaluation.samples, 24);
  EXPECT_LT(small.evaluation.passes(), small.activations) << "nothing is kept for a backward pass";
  options_.evaluation.batch_size = 200;
  const MemoryPlan large = plan_memory(options_, {});
  EXPECT_EQ(large.evaluation.samples, 200);
  EXPECT_EQ(large.passes(), large.evaluation.passes()) << "more than a step";
  EXPECT_GT(large.total() - small.total(), large.evaluation.activations - small.activations);
  PlannedDevice device{"a small host", {}, large.total(false) - 1};
  EXPECT_THAT(testing::message_of<UsageError>([&] { check_fits(large, device); }),
              HasSubstr("make evaluation.batch_size smaller"));
  options_.evaluation.max_samples = 7;
  EXPECT_EQ(plan_memory(options_, {}).evaluation.samples, 7);
  options_.evaluation.holdout = {};
  options_.evaluation.next_window = true;
  options_.evaluation.max_samples = 9;
  EXPECT_EQ(plan_memory(options_, {}).evaluation.samples, 9) << "of a window";
  options_.data.path = folder_ / "not_here";
  EXPECT_EQ(plan_memory(options_, {}).evaluation.samples, 200) << "assumed";
}

TEST_F(MemoryPlanTest, TablesHaveTheRowsThatOccur) {
  options_.features.item_rows = 1'000'000;
  options_.features.context.push_back({"user_x_hour", {"user", "hour"}, 500, true});
  const MemoryPlan plan = plan_memory(options_, {});
  ASSERT_EQ(plan.tables.size(), 3u);
  EXPECT_EQ(plan.tables[0].rows, 12);  // items of the dataset
  EXPECT_EQ(plan.tables[0].nominal_rows, 1'000'000);
  EXPECT_FALSE(plan.tables[0].is_bound);
  EXPECT_EQ(plan.tables[1].rows, 12);  // users
  EXPECT_TRUE(plan.tables[2].is_bound);
  EXPECT_LE(plan.tables[2].rows, 500);
  const TableConfig table{.name = "item", .rows = 12, .dim = 8};
  const auto memory = [](const TableConfig& of, bool gpu_trains) {
    const TableMemory found = table_memory(of, 1, 12, gpu_trains);
    return std::pair(found.device, found.host);
  };
  const std::int64_t on_host = 12 * (9 * 4 + 24) + 64 * 8;
  EXPECT_EQ(plan.tables[0].bytes, on_host);
  EXPECT_EQ(memory(table, false), std::pair(on_host, std::int64_t{0}));
  TableConfig below = table;
  below.place = TableTier::host;
  const std::int64_t records = 16 * (32 + 48);  // a chunk of 16 records
  const std::int64_t chunks = 2 * 8 * 48;       // of page-locked memory, 8 rows each
  EXPECT_EQ(memory(table, true), std::pair(records + 1024 * 16, std::int64_t{0}));
  TableConfig limited = table, cached = table;
  limited.limits.capacity = 12;
  const std::int64_t directory = 12 * 24 + 64 * 8;
  EXPECT_EQ(memory(limited, true), std::pair(records, directory));
  cached.cache_rows = 12;
  EXPECT_EQ(memory(cached, true), std::pair(records, directory + chunks + 12 * 4 + 12 * (12 + 4)));
  const TableMemory grown = table_memory(below, 1, 12, true, 12);
  EXPECT_EQ(std::pair(grown.device, grown.host), memory(cached, true));
  const std::int64_t cache = 12 * 4 + 12 * (12 + 4);  // what is where, beside its rows
  TableConfig disk = table;
  disk.place = TableTier::disk;
  disk.host_rows = 12;
  EXPECT_EQ(memory(disk, false).first, 12 * 48 + directory + cache);
  EXPECT_EQ(table_memory(disk, 1, 12, true).disk, 12 * 48);
  disk.cache_rows = 12;
  EXPECT_EQ(memory(disk, true), std::pair(records, 12 * 48 + directory + 2 * cache));
  EXPECT_EQ(plan.total() - plan.total(false), plan.tables[2].bytes);
}

TEST_F(MemoryPlanTest, ATableBehindACacheTakesTheCacheOfTheDeviceAndItsRowsOfTheHost) {
  options_.features.item_rows = 1'000'000;
  options_.tables.by_name["item"] = {.place = "cache", .device_memory = "4KiB"};
  EXPECT_EQ(plan_memory(options_, {}).tables[0].cache_rows, 4096 / (32 + 48));
  MemoryPlan plan;
  plan.tables.push_back({.name = "item",
                         .nominal_rows = 2000,
                         .rows = 2000,
                         .is_bound = true,
                         .bytes = 700,
                         .host_bytes = 90'000,
                         .cache_rows = 10});
  const PlannedDevice gpu{"a GPU", {}, 10 << 20};
  EXPECT_EQ(plan.total(false), 700) << "a cache is no bound, and rows on the host are not on the GPU";
  EXPECT_EQ(plan.host_bytes(), 90'000);
  EXPECT_THAT(to_text(plan, gpu),
              HasSubstr("at most 2,000 rows of 2,000: a cache of 10; 87.9 KiB on the host"));
  EXPECT_EQ(to_json(plan, gpu).at("tables")[0].at("cache_rows"), 10);
  plan.tables[0].nominal_rows = 9'222'676'756'076'468'274;
  EXPECT_THAT(to_text(plan, gpu), HasSubstr("at most 2,000 rows of ids that are hashes: a cache"));
  EXPECT_EQ(to_json(plan, gpu).at("host_bytes"), 90'000);
}

TEST_F(MemoryPlanTest, ATableOnTheHostHasACacheOnTheGpu) {
  if (!kBuiltWithCuda) GTEST_SKIP() << "built without CUDA";
  options_.tables.place = TableTier::host;
  const DryDevice gpu = planned_gpu("h200").device;
  const MemoryPlan::Table item = plan_memory(options_, gpu).tables[0];
  EXPECT_EQ(item.cache_rows, 12) << "all items are in the largest step";
  EXPECT_EQ(item.bytes, records_bytes({.rows = 12, .dim = 8, .state_width = 1}, 12));
  EXPECT_GT(item.host_bytes, 12 * 9 * 4);
  EXPECT_EQ(plan_memory(options_, {}).tables[0].cache_rows, 0) << "a CPU trains";
  EXPECT_GT(plan_memory(options_, gpu, 2).tables[0].bytes, 0) << "of several ranks";
  options_.tables.by_name["item"].dtype = DType::bf16;
  EXPECT_EQ(plan_memory(options_, gpu).tables[0].bytes,
            records_bytes({.rows = 12, .dim = 8, .state_width = 1, .dtype = DType::bf16}, 12));
  options_.tables.by_name["item"].ranks = "column";
  options_.tables.by_name["item"].optimizer = "adam";
  const RowShape half{.rows = 12, .dim = 4, .state_width = 9, .dtype = DType::bf16};
  EXPECT_EQ(plan_memory(options_, gpu, 2).tables[0].bytes, records_bytes(half, 12)) << "by column";
  options_.tables.by_name["item"].place = "cache";
  options_.tables.by_name["item"].device_memory = std::to_string(7 * record_bytes(half));
  EXPECT_EQ(plan_memory(options_, gpu, 2).tables[0].cache_rows, 7) << "of half rows";
}

TEST_F(MemoryPlanTest, AutoIsTheFirstPlaceThatFits) {
  options_.tables.place = TableTier::automatic;
  MemoryPlan plan;
  plan.activations = 1000;
  for (const auto& [name, bytes] : {std::pair("item", 300), std::pair("user", 100), std::pair("pair", 900)})
    plan.tables.push_back({.name = name, .bytes = bytes, .place = TableTier::automatic, .step_bytes = 40});
  const auto placed = [&](std::int64_t room) {
    const RunOptions options = with_places(options_, plan, room);
    std::string words;
    for (const MemoryPlan::Table& table : plan.tables) {
      const auto section = options.tables.by_name.find(table.name);
      const TableSection of = section == options.tables.by_name.end() ? TableSection{} : section->second;
      words += word_of(kTableTiers, place_of(options, of)) + of.device_memory + " ";
    }
    return words;
  };
  EXPECT_EQ(placed(2300), "device device device ");
  EXPECT_EQ(placed(2299), "device device cache899 ");
  EXPECT_EQ(placed(1480), "device device cache80 ");
  EXPECT_EQ(placed(1479), "cache94 device cache284 ")
      << "item beside pair leaves less than two steps of pair";
  EXPECT_EQ(placed(1279), "host device cache134 ");
  EXPECT_EQ(placed(1000), "host host host ");
  plan.ranks = 2;
  EXPECT_EQ(placed(2299), "device device cache899 ");
  plan.tables[2].form = TableRanks::copy;
  EXPECT_EQ(placed(2299), "cache299 device device ");
  plan.tables[2].form = TableRanks::column;
  EXPECT_EQ(placed(2299), "device device cache899 ");
  plan.tables[2].form = TableRanks::split;
  plan.tables[1].place = TableTier::host;
  options_.tables.by_name["user"].place = "host";
  EXPECT_EQ(placed(2299), "device host cache899 ");

  const RunOptions on_host = with_places(options_, {"a CPU", {}, 1000});
  EXPECT_EQ(on_host.tables.place, TableTier::device);
  EXPECT_EQ(on_host.tables.by_name.at("user").place, "host");
}

TEST_F(MemoryPlanTest, CountsParametersAndTheirOptimizer) {
  const Experiment experiment(options_);
  const MemoryPlan plan = plan_memory(options_, {});
  EXPECT_EQ(plan.parameters, 4 * experiment.learner().model->parameters().count());
  EXPECT_EQ(plan.gradients, plan.parameters);
  const std::int64_t read_and_written = experiment.learner().dense_optimizer.step_bytes();
  EXPECT_EQ(read_and_written, 3 * plan.parameters + 2 * plan.optimizer);
  EXPECT_EQ(plan_memory(options_, {}, 4).optimizer, plan.optimizer);
  options_.ranks.shard_optimizer = true;
  EXPECT_EQ(plan_memory(options_, {}).optimizer, plan.optimizer);
  const double part =
      static_cast<double>(plan_memory(options_, {}, 4).optimizer) / static_cast<double>(plan.optimizer);
  EXPECT_GE(part, 0.25);
  EXPECT_LT(part, 0.4);
}

TEST_F(MemoryPlanTest, CountsRowsThatRanksReadAhead) {
  options_.tables.ranks = TableRanks::split;
  const MemoryPlan plain = plan_memory(options_, {}, 2);
  options_.ranks.pipeline = Pipeline::prefetch;
  EXPECT_GT(plan_memory(options_, {}, 2).activations, plain.activations);
  EXPECT_EQ(plan_memory(options_, {}).activations, plan_memory(options_, {}, 1).activations);
  options_.tables.ranks = TableRanks::copy;
  EXPECT_EQ(plan_memory(options_, {}, 2).activations, plain.activations);
}

TEST_F(MemoryPlanTest, RefusesWhatDoesNotFitWithTheFigures) {
  const MemoryPlan plan = plan_memory(options_, {});
  PlannedDevice device{"a small GPU", {}, plan.total(false)};
  EXPECT_NO_THROW(check_fits(plan, device));
  device.memory_bytes -= 1;
  const std::string message = testing::message_of<UsageError>([&] { check_fits(plan, device); });
  EXPECT_THAT(message, HasSubstr("a small GPU has"));
  EXPECT_THAT(message, HasSubstr("training.micro_batch_tokens"));
  EXPECT_THAT(to_text(plan, device), HasSubstr("it does not fit"));
  EXPECT_EQ(to_json(plan, device).at("fits"), false);
  EXPECT_EQ(to_json(plan, device).at("total"), plan.total());
}

TEST_F(MemoryPlanTest, ARankMayHaveLessThanTheDevice) {
  const PlannedDevice device{"a GPU", {}, 1 << 30}, unknown{"another", {}, 0};
  EXPECT_EQ(capped(device, options_).memory_bytes, 1 << 30);
  options_.device_memory = "2GiB";
  EXPECT_EQ(capped(device, options_).memory_bytes, 1 << 30);
  options_.device_memory = "1MiB";
  EXPECT_EQ(capped(device, options_).memory_bytes, 1 << 20);
  EXPECT_EQ(capped(device, options_).name, "a GPU (device_memory = \"1MiB\")");
  EXPECT_EQ(capped(unknown, options_).memory_bytes, 1 << 20);
}

TEST_F(MemoryPlanTest, OfOneOfSeveralRanksHasItsShare) {
  options_.sparse.kind = RowOptimizerKind::adagrad;
  const MemoryPlan alone = plan_memory(options_, {});
  const auto items = [&](const char* form) {
    options_.tables.by_name["item"].ranks = form;
    return plan_memory(options_, {}, 4).tables[0];
  };
  EXPECT_EQ(items("copy").bytes, alone.tables[0].bytes);
  EXPECT_EQ(items("table").rows, 12) << "on the rank that has them";
  EXPECT_EQ(items("split").rows, 9) << "3, and three deviations of 1.7";
  const MemoryPlan::Table columns = items("column");
  EXPECT_EQ(columns.rows, 12);
  EXPECT_LT(columns.bytes, alone.tables[0].bytes);
  const MemoryPlan plan = plan_memory(options_, {}, 4);
  EXPECT_LT(plan.tokens, alone.tokens);
  EXPECT_LT(plan.activations, alone.activations);
  const PlannedDevice device{"a small GPU", {}, plan.total(false) - 1};
  EXPECT_THAT(testing::message_of<UsageError>([&] { check_fits(plan, device); }),
              HasSubstr("one of 4 ranks"));
  EXPECT_THAT(to_text(plan, device), HasSubstr("12 rows of 12 (column)"));
}

// Nothing is refused by a bound alone: which rows come to life is not known.
TEST_F(MemoryPlanTest, ABoundRefusesNothing) {
  MemoryPlan plan;
  plan.tables.push_back({"crossed", 1000, 1000, true, 1'000'000});
  plan.activations = 10;
  const PlannedDevice device{"a small GPU", {}, 1000};
  EXPECT_NO_THROW(check_fits(plan, device));
  EXPECT_THAT(to_text(plan, device), HasSubstr("it fits unless"));
}

TEST_F(MemoryPlanTest, AssumesFullBatchesWithoutADataset) {
  options_.features.item_rows = 5'000;
  options_.features.attributes = {{.name = "artist_id", .rows = 70}};
  options_.features.context.push_back({"crossed", {"user", "artist_id", "is_organic"}, 900, true});
  options_.data.path = folder_ / "not_here";
  for (const bool is_second : {false, true}) {
    if (is_second) {
      use_ranking_gr();
      options_.features.attributes.clear();
      options_.features.context.pop_back();
      ranking_gr_of(options_).label_column = "label";
      ranking_gr_of(options_).labels = {"task0", "task1"};
    }
    const MemoryPlan plan = plan_memory(options_, {});
    EXPECT_EQ(plan.samples, 24);
    const std::int64_t context = std::ssize(options_.features.context);
    // max_sequence leaves room for one event less than a history has.
    EXPECT_EQ(plan.tokens, is_second ? 24 * (context + 2 * 31) : 24 * 32);
    EXPECT_EQ(plan.tables[0].rows, 5'000);
    EXPECT_TRUE(plan.tables[0].is_bound);
    EXPECT_THAT(plan.assumption, HasSubstr("not_here"));
  }
  options_.training.micro_batch_tokens = 100;
  EXPECT_LE(plan_memory(options_, {}).tokens, 100);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "not_here"));
}

TEST_F(MemoryPlanTest, AnUnknownGpuIsRefusedWithTheKnownOnes) {
  EXPECT_THAT(testing::message_of<UsageError>([&] { planned_gpu("voodoo"); }), HasSubstr("NVIDIA H200"));
}

}  // namespace
}  // namespace hstu
