// Runs whose tables are behind caches.
#include <gmock/gmock.h>

#include "hstu/checkpoint/checkpoint.h"
#include "support/kind_options.h"
#include "training/ranked_run.h"

namespace hstu::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CachedRun : public RankedRun {
 protected:
  // A row of the item table has 32 bytes of header, and its values and state in multiples of 16 bytes.
  std::string room_for(std::int64_t rows) const {
    const std::int64_t floats = dlrmv4_of(options_).embedding_dim + 1;
    return std::to_string(rows * (32 + (floats + 3) / 4 * 16));
  }
  TableSection cache_of(std::int64_t rows) const {
    return {.place = "cache", .device_memory = room_for(rows)};
  }
};

TEST_F(CachedRun, HasTheBytesOfARunWithoutCaches) {
  options_.training.epochs = 2;
  options_.training.max_steps = 0;
  options_.training.batch_size = 3;
  run("plain");
  options_.tables.by_name["item"] = cache_of(12);
  options_.tables.by_name["user"] = cache_of(3);
  run("cached");
  ASSERT_GE(table_files(folder_ / "plain").size(), 2u);
  EXPECT_EQ(table_files(folder_ / "cached"), table_files(folder_ / "plain"));
  const std::vector<Json> lines = log("cached", "train"), plain = log("plain", "train");
  EXPECT_FALSE(plain.back().contains("caches"));
  EXPECT_EQ(lines.back().at("gradient_norm"), plain.back().at("gradient_norm"));
  const Json user = lines.back().at("caches").at("user");
  EXPECT_EQ(user.at("rows"), 3);
  EXPECT_GT(user.at("misses").get<std::int64_t>() + user.at("prefetched").get<std::int64_t>(), 100);
  EXPECT_GT(user.at("bytes_out"), 0);
}

TEST_F(CachedRun, ContinuesToTheBitWithLimits) {
  options_.tables.by_name["item"] = {.capacity = "30",
                                     .place = "cache",
                                     .device_memory = room_for(100),
                                     .evict = Evict::lfu,
                                     .admit_after = 2};
  options_.tables.by_name["user"] = {
      .capacity = "9", .place = "cache", .device_memory = room_for(7), .evict = Evict::lru};
  options_.checkpoint = {.every_steps = 3, .every_seconds = 0, .keep = 0};
  run("whole");
  int n = 0;
  for (const int step : {1, 4, 9}) {
    const std::string name = "parts" + std::to_string(n++);
    interrupt_and_resume(name, "step.end", step);
    expect_same_run("whole", name);
  }
}

// One table with rows in bf16, and one with a cache above that of the host.
TEST_F(CachedRun, HasTheBytesOfARunWithoutADiskAndContinuesToTheBit) {
  if (!std::filesystem::exists(HSTU_PROGRAM_DIR "/libhstu_rocksdb.so"))
    GTEST_SKIP() << "built without RocksDB";
  options_.checkpoint = {.every_steps = 3, .every_seconds = 0, .keep = 0};
  const TableSection item{.capacity = "8", .evict = Evict::lfu}, user{.dtype = DType::bf16};
  options_.tables.by_name = {{"item", item}, {"user", user}};
  run("plain");
  const Path scratch = folder_ / "scratch";
  options_.tables.disk_folder = scratch;
  for (const auto& [name, rows] : {std::pair("item", 5), std::pair("user", 7)}) {
    options_.tables.by_name[name].place = "disk";
    options_.tables.by_name[name].host_memory = room_for(rows);
  }
  options_.tables.by_name["item"].device_memory = room_for(12);
  run("disk");
  auto plain = newest_checkpoint(folder_ / "plain"), disk = newest_checkpoint(folder_ / "disk");
  const auto is_of_tables = [](const auto& file) { return file.first.find("tables/") != std::string::npos; };
  std::erase_if(plain, std::not_fn(is_of_tables));
  std::erase_if(disk, std::not_fn(is_of_tables));
  EXPECT_EQ(disk, plain);
  EXPECT_GT(log("disk", "train").back().at("caches").at("user").at("bytes_in"), 0);
  interrupt_and_resume("parts", "step.end", 4);
  expect_same_run("disk", "parts");
  run_on(2, "ranks");
  for (const auto& entry : std::filesystem::directory_iterator(scratch))
    EXPECT_FALSE(entry.is_directory()) << entry.path();
}

TEST_F(CachedRun, RefusesACacheThatIsTooSmallForOneBatch) {
  options_.tables.by_name["item"] = cache_of(2);
  EXPECT_THAT(
      message_of<UsageError>([&] { run("run"); }),
      AllOf(HasSubstr("tables.item: a step reads"), HasSubstr("room for 2"), HasSubstr("device_memory")));
}

TEST_F(CachedRun, RefusesPlacesThatContradictTheMemoryOfTheCache) {
  const auto message = [&](const TableSection& section) {
    options_.tables.by_name["item"] = section;
    return message_of<UsageError>([&] { const Experiment experiment(options_); });
  };
  EXPECT_THAT(message({.device_memory = "1MiB"}),
              AllOf(HasSubstr("tables.item.device_memory = \"1MiB\""),
                    HasSubstr("the place of table item is \"device\": set tables.item.place = \"cache\"")));
  EXPECT_THAT(message({.place = "auto", .device_memory = "1MiB"}), HasSubstr("is \"auto\""));
  EXPECT_THAT(message({.place = "cache"}),
              AllOf(HasSubstr("tables.item.device_memory"), HasSubstr("needs the size of its cache")));
  EXPECT_THAT(message({.place = "cache", .device_memory = "7"}), HasSubstr("less than one row"));
  EXPECT_THAT(message({.place = "disk"}), HasSubstr("tables.item.host_memory"));
  EXPECT_THAT(message({.place = "disk", .host_memory = "1MiB"}), HasSubstr("tables.disk_folder"));
  EXPECT_THAT(message({.place = "host", .host_memory = "1MiB"}),
              HasSubstr("set tables.item.place = \"disk\""));
  options_.tables.place = TableTier::host;
  EXPECT_THAT(message({.device_memory = "1MiB"}), HasSubstr("is \"host\""));
  EXPECT_EQ(message({.place = "cache", .device_memory = "1MiB"}), "")
      << "a table need not be where the others are";
}

}  // namespace
}  // namespace hstu::testing
