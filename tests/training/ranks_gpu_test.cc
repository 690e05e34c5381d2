// Whole runs over ranks on GPUs: one after another on one GPU with messages through the host, and each on a
// GPU of its own with NCCL where there are two.
#include "hstu/device/device.h"
#include "hstu/rows/row_record.h"
#include "support/kind_options.h"
#include "training/ranked_run.h"

namespace hstu::testing {
namespace {

class RankedRunOnGpus : public RankedRun {
 protected:
  RankedRunOnGpus() {
    options_.device = "cuda";
    options_.ranks.gpu_messages = GpuMessages::host;
  }
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
  // Of rows with Adam's state, or so many of their columns.
  std::string room_for(std::int64_t rows, std::int64_t columns = 8) const {
    return std::to_string(rows * record_bytes({.dim = columns, .state_width = 2 * columns + 1}));
  }
  void expect_the_model_of_one_rank(const TrainResult& result, const TrainResult& alone) {
    EXPECT_EQ(result.steps, alone.steps);
    EXPECT_EQ(result.samples, alone.samples);
    EXPECT_NEAR(*result.evaluation->model.find("ne"), *alone.evaluation->model.find("ne"), 1e-5);
  }
};

TEST_F(RankedRunOnGpus, EveryWorldSizeTrainsTheSameModel) {
  const TrainResult alone = run("alone");
  ASSERT_TRUE(alone.evaluation);
  const std::vector<Json> expected = log("alone", "train");
  for (const int ranks : {2, 3}) {
    const std::string name = std::to_string(ranks);
    expect_the_model_of_one_rank(run_on(ranks, name), alone);
    const std::vector<Json> lines = log(name, "train");
    ASSERT_EQ(lines.size(), expected.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_NEAR(lines[i].at("loss"), expected[i].at("loss").get<double>(), 1e-5);
      EXPECT_EQ(lines[i].at("table_rows"), expected[i].at("table_rows"));
    }
  }
}

// Two ranks divide two heads; of one head each has its own queries, and gets keys and values.
TEST_F(RankedRunOnGpus, LongSamplesThatRanksShareTrainTheSameModelAndGiveTheSameBytes) {
  options_.ranks.context_above = 7;
  for (const int heads : {2, 1}) {
    dlrmv4_of(options_).heads = heads;
    const std::string name = fmt::format("{} heads", heads);
    options_.ranks.context = 1;
    const TrainResult alone = run(name + " alone");
    options_.ranks.context = 2;
    expect_the_model_of_one_rank(run_on(2, name), alone);
    run_on(2, name + " again");
    expect_same_tensors(name + " again", name);
  }
}

TEST_F(RankedRunOnGpus, CopiesPartsAndTablesOnTheHostTrainTheSameModel) {
  const TrainResult alone = run("alone");
  options_.tables.ranks = TableRanks::copy;
  expect_the_model_of_one_rank(run_on(2, "copies"), alone);
  options_.training.micro_batch_tokens = 40;
  expect_the_model_of_one_rank(run_on(2, "parts of copies"), alone);
  options_.tables.ranks = TableRanks::split;
  expect_the_model_of_one_rank(run_on(3, "parts"), alone);
  options_.tables.place = TableTier::host;
  expect_the_model_of_one_rank(run_on(2, "host"), alone);
  options_.sparse.kind = RowOptimizerKind::adam;
  const TrainResult adam = run("adam");
  options_.tables.ranks = TableRanks::column;
  expect_the_model_of_one_rank(run_on(2, "columns on the host"), adam);
  options_.tables.place = TableTier::device;
  expect_the_model_of_one_rank(run_on(3, "parts of columns"), adam);
}

// In parts. Three ranks have 2, 3 and 3 of 8 columns. A wire of 16 bits rounds the same values in every form
// whose rows move.
TEST_F(RankedRunOnGpus, EveryMixOfTablesGivesTheSameBytes) {
  options_.sparse.kind = RowOptimizerKind::adam;
  options_.training.micro_batch_tokens = 40;
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.tables.wire_rows = options_.tables.wire_gradients = type;
    options_.tables.by_name.clear();
    const std::string split = fmt::format("split {}", to_string(type));
    run_on(3, split);
    for (const auto& [item, user] : {std::pair("column", "column"),
                                     {"column", "split"},
                                     {"table", "column"},
                                     {"column", "copy"},
                                     {"copy", "split"},
                                     {"split", "copy"},
                                     {"table", "copy"}}) {
      options_.tables.by_name["item"].ranks = item;
      options_.tables.by_name["user"].ranks = user;
      const std::string name = fmt::format("{} {} {}", item, user, to_string(type));
      const TrainResult result = run_on(3, name);
      const bool has_copies = std::string_view(item) == "copy" || std::string_view(user) == "copy";
      if (type == DType::f32 || !has_copies)
        expect_same_tensors(name, split);
      else
        EXPECT_TRUE(result.evaluation) << name;
    }
  }
}

TEST_F(RankedRunOnGpus, TheSameWorldSizeGivesTheSameBytesAndResumes) {
  run_on(2, "a");
  run_on(2, "b");
  expect_same_run("a", "b");
  options_.training.max_steps = 5;
  run_on(2, "halves");
  options_.training.max_steps = 12;
  run_on(2, "halves", true);
  EXPECT_EQ(newest_checkpoint(folder_ / "halves").at("dense.safetensors"),
            newest_checkpoint(folder_ / "a").at("dense.safetensors"));
  const TrainResult alone = run("alone");
  expect_the_model_of_one_rank(alone, run_on(1, "halves", true));
}

TEST_F(RankedRunOnGpus, ColumnsResumeAtAnotherWorldSizeAndAsAnotherForm) {
  options_.sparse.kind = RowOptimizerKind::adam;
  const TrainResult alone = run("alone");
  options_.tables.ranks = TableRanks::column;
  run_on(3, "whole");
  options_.training.max_steps = 5;
  for (const char* name : {"halves", "changed", "split"}) run_on(3, name);
  options_.training.max_steps = 12;
  run_on(3, "halves", true);
  EXPECT_EQ(learner_tensors("halves"), learner_tensors("whole"));
  expect_the_model_of_one_rank(run_on(2, "changed", true), alone);
  options_.tables.ranks = TableRanks::split;
  run_on(3, "split", true);
  EXPECT_EQ(learner_tensors("split"), learner_tensors("whole"));
}

TEST_F(RankedRunOnGpus, NcclGivesTheBitsOfMessagesThroughTheHost) {
  if (cuda_device_count() < 2) GTEST_SKIP() << "needs two GPUs";
  options_.sparse.kind = RowOptimizerKind::adam;
  for (const TableRanks tables : {TableRanks::split, TableRanks::column, TableRanks::copy}) {
    options_.tables.ranks = tables;
    const std::string name(word_of(kTableRanks, tables));
    options_.ranks.gpu_messages = GpuMessages::host;
    run_on(2, name + " host");
    options_.ranks.gpu_messages = GpuMessages::nccl;
    run_on(2, name + " nccl");
    expect_same_tensors(name + " nccl", name + " host");
  }
}

// NCCL's kernels hold multiprocessors while they wait for another rank, beside those of the step.
TEST_F(RankedRunOnGpus, NcclGivesTheSameBytesInEveryPipeline) {
  if (cuda_device_count() < 2) GTEST_SKIP() << "needs two GPUs";
  options_.sparse.kind = RowOptimizerKind::adam;
  options_.training.micro_batch_tokens = 40;
  const auto expect_same = [&](const std::string& name) {
    options_.ranks.gpu_messages = GpuMessages::host;
    options_.ranks.pipeline = Pipeline::plain;
    run_on(2, name);
    options_.ranks.gpu_messages = GpuMessages::nccl;
    for (const auto& [word, pipeline] : kPipelines) {
      options_.ranks.pipeline = pipeline;
      const std::string through_nccl = fmt::format("{} nccl {}", name, word);
      run_on(2, through_nccl);
      expect_same_tensors(through_nccl, name);
    }
  };
  for (const char* form : {"split", "column"}) {
    const std::string room = room_for(16, std::string_view(form) == "column" ? 4 : 8);
    for (const char* place : {"device", "host", "cache"}) {
      const bool cache = std::string_view(place) == "cache";
      for (const char* name : {"item", "user"})
        options_.tables.by_name[name] = {.place = place, .device_memory = cache ? room : "", .ranks = form};
      expect_same(fmt::format("{} {}", form, place));
    }
    options_.tables.by_name["item"] = {.capacity = "6", .evict = Evict::lfu, .admit_after = 3, .ranks = form};
    options_.tables.by_name["user"] = {.capacity = "9", .evict = Evict::lru, .ttl = "2000s", .ranks = form};
    expect_same(fmt::format("{} limits", form));
  }
}

TEST_F(RankedRunOnGpus, ShardsOfTheOptimizerHaveTheBitsOfTheWhole) {
  dlrmv4_of(options_).positions = 8192;  // a parameter of two blocks
  run_on(2, "whole");
  options_.ranks.shard_optimizer = true;
  for (const auto& [word, messages] : kGpuMessages) {
    if (messages == GpuMessages::nccl && cuda_device_count() < 2) continue;
    options_.ranks.gpu_messages = messages;
    const std::string name = fmt::format("shards {}", word);
    run_on(2, name);
    for (const char* file : {"dense.safetensors", "optimizer.safetensors"})
      EXPECT_EQ(newest_checkpoint(folder_ / name).at(file), newest_checkpoint(folder_ / "whole").at(file));
  }
}

TEST_F(RankedRunOnGpus, EveryPipelineGivesTheSameBytes) {
  options_.tables.by_name["user"].ranks = "copy";
  expect_same_in_every_pipeline("whole");
  options_.training.micro_batch_tokens = 40;
  expect_same_in_every_pipeline("parts");
  options_.tables.wire_rows = DType::bf16;
  expect_same_in_every_pipeline("bf16");
  options_.tables.wire_rows = DType::f32;
  options_.tables.by_name["user"].ranks = "table";
  options_.tables.place = TableTier::host;
  expect_same_in_every_pipeline("host");
  options_.sparse.kind = RowOptimizerKind::adam;
  options_.tables.by_name["user"].ranks = "column";
  expect_same_in_every_pipeline("columns on the host");
  options_.tables.place = TableTier::device;
  options_.tables.wire_rows = DType::bf16;
  expect_same_in_every_pipeline("columns");
}

// Behind caches that have room for little more than a step.
TEST_F(RankedRunOnGpus, CachesChangeNoBit) {
  options_.sparse.kind = RowOptimizerKind::adam;
  run_on(3, "device");
  for (const auto& [word, pipeline] : kPipelines) {
    options_.ranks.pipeline = pipeline;
    options_.tables.by_name["item"] = {.place = "cache", .device_memory = room_for(8)};
    options_.tables.by_name["user"] = {.place = "cache", .device_memory = room_for(5)};
    const std::string name = fmt::format("cache {}", word);
    run_on(3, name);
    expect_same_tensors(name, "device");
    const Json caches = log(name, "train").back().at("caches");
    EXPECT_EQ(caches.at("item").at("rows"), 3 * 8);
    EXPECT_GT(caches.at("user").at("bytes_out"), 0);
    EXPECT_EQ(caches.at("user").at("prefetched") > 0, pipeline != Pipeline::plain);
  }
}

// Every rank has columns of all rows of a step. The cache of items has room for all of them.
TEST_F(RankedRunOnGpus, CachesOfColumnsChangeNoBit) {
  options_.sparse.kind = RowOptimizerKind::adam;
  run_on(3, "split");
  options_.tables.by_name["item"] = {.place = "host", .ranks = "column"};
  options_.tables.by_name["user"] = {.place = "cache", .device_memory = room_for(9, 3), .ranks = "column"};
  for (const auto& [word, pipeline] : kPipelines) {
    options_.ranks.pipeline = pipeline;
    const std::string name = fmt::format("columns {}", word);
    run_on(3, name);
    expect_same_tensors(name, "split");
    const Json user = log(name, "train").back().at("caches").at("user");
    EXPECT_EQ(user.at("rows"), 3 * 9);
    EXPECT_GT(user.at("bytes_out"), 0);
  }
}

TEST_F(RankedRunOnGpus, RowsInBf16HaveTheSameBitsWhereverTheyAre) {
  const bool has_disk = std::filesystem::exists(HSTU_PROGRAM_DIR "/libhstu_rocksdb.so");
  options_.tables.disk_folder = folder_ / "scratch";
  options_.sparse.kind = RowOptimizerKind::adam;
  for (const char* name : {"item", "user"}) options_.tables.by_name[name].dtype = DType::bf16;
  run_on(3, "device");
  for (const char* form : {"split", "column"}) {
    for (const auto& [place, rows] :
         {std::pair("device", 0), {"host", 0}, {"cache", 8}, {"disk", 0}, {"disk", 8}}) {
      if (!has_disk && std::string_view(place) == "disk") continue;
      for (const char* name : {"item", "user"}) {
        TableSection& section = options_.tables.by_name[name];
        section.ranks = form;
        section.place = place;
        section.device_memory = rows > 0 ? room_for(rows) : "";
        section.host_memory = std::string_view(place) == "disk" ? room_for(9) : "";
      }
      const std::string name = fmt::format("{} {} {}", form, place, rows);
      run_on(3, name);
      expect_same_tensors(name, "device");
    }
  }
}

// The same rows remain as on processors and as with one rank, also after a resumed run at another world size.
TEST_F(RankedRunOnGpus, LimitsKeepTheSameRows) {
  options_.tables.by_name["item"] = {.capacity = "6", .evict = Evict::lfu, .admit_after = 3};
  options_.tables.by_name["user"] = {.capacity = "9", .evict = Evict::lru, .ttl = "2000s"};
  options_.sparse.kind = RowOptimizerKind::sgd;
  const TrainResult alone = run("alone");
  const std::vector<Json> expected = log("alone", "train");
  for (const char* form : {"split", "column"}) {
    options_.tables.by_name["item"].ranks = form;
    for (const auto& [word, pipeline] : kPipelines) {
      options_.ranks.pipeline = pipeline;
      const std::string name = fmt::format("{} {}", form, word);
      expect_the_model_of_one_rank(run_on(3, name), alone);
      const std::vector<Json> lines = log(name, "train");
      ASSERT_EQ(lines.size(), expected.size());
      for (std::size_t i = 0; i < lines.size(); ++i) {
        EXPECT_EQ(lines[i].at("table_rows"), expected[i].at("table_rows"));
        EXPECT_EQ(lines[i].at("tables"), expected[i].at("tables"));
      }
    }
  }
  options_.training.max_steps = 5;
  run_on(3, "halves");
  options_.tables.by_name["item"].ranks = "split";
  options_.training.max_steps = 12;
  expect_the_model_of_one_rank(run_on(2, "halves", true), alone);
  EXPECT_EQ(log("halves", "train").back().at("table_rows"), expected.back().at("table_rows"));
  options_.tables.by_name["item"].ranks = "copy";
  EXPECT_NE(message_of<UsageError>([&] { run_on(2, "copy"); }).find("tables.item.ranks = \"copy\""),
            std::string::npos);
}

TEST_F(RankedRunOnGpus, RowsMayTravelInSixteenBits) {
  const TrainResult alone = run("alone");
  for (const auto& [word, type] : kWireTypes) {
    options_.tables.wire_rows = options_.tables.wire_gradients = type;
    const TrainResult result = run_on(2, std::string(word));
    EXPECT_NEAR(*result.evaluation->model.find("ne"), *alone.evaluation->model.find("ne"),
                type == DType::f32 ? 1e-5 : 0.02);
    for (const Json& line : log(std::string(word), "train")) EXPECT_FALSE(line.contains("beyond_wire"));
  }
}

TEST_F(RankedRunOnGpus, TwoRanksOnOneGpuAreRefusedByName) {
  options_.device = "cuda:0";
  options_.ranks.gpu_messages = GpuMessages::nccl;
  EXPECT_NE(message_of<UsageError>([&] { run_on(2, "run"); }).find("ranks 0 and 1 use the same GPU"),
            std::string::npos);
}

}  // namespace
}  // namespace hstu::testing
