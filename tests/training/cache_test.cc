// Runs whose tables are behind caches.
#include <gmock/gmock.h>

#include "hstu/checkpoint/checkpoint.h"
#include "training/ranked_run.h"

namespace hstu::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CachedRun : public RankedRun {
 protected:
  // A row of the item table has 32 bytes of header, and its values and state in multiples of 16 bytes.
  std::string room_for(std::int64_t rows) const {
    const std::int64_t floats = options_.model.embedding_dim + 1;
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
  const auto tables_of = [&](const std::string& name) {
    auto files = newest_checkpoint(folder_ / name);
    std::erase_if(files, [](const auto& file) { return file.first.find("tables/") == std::string::npos; });
    return files;
  };
  ASSERT_GE(tables_of("plain").size(), 2u);
  EXPECT_EQ(tables_of("cached"), tables_of("plain"));
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
  options_.tables.place = TablePlace::host;
  EXPECT_THAT(message({.device_memory = "1MiB"}), HasSubstr("is \"host\""));
  EXPECT_EQ(message({.place = "cache", .device_memory = "1MiB"}), "")
      << "a table need not be where the others are";
}

}  // namespace
}  // namespace hstu::testing
