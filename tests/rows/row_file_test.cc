// Rows on disk: a file of rows alone, and tables whose host memory is a cache over it.
#include "hstu/rows/row_file.h"

#include <csignal>
#include <fstream>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "embedding/support.h"
#include "hstu/base/error.h"
#include "support/table_walk.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;
using namespace testing_embedding;
using testing::AllOf;
using testing::HasSubstr;

class RowsOnDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(HSTU_PROGRAM_DIR "/libhstu_rocksdb.so")) GTEST_SKIP() << "built without RocksDB";
  }
  // Folders of rows.
  std::int64_t folders() const {
    return std::count_if(fs::directory_iterator(folder_), fs::directory_iterator(),
                         [](const auto& entry) { return entry.is_directory(); });
  }
  Path folder_ = temporary_folder();
};

TEST_F(RowsOnDisk, AreThoseThatWereWrittenLast) {
  constexpr std::int64_t kWidth = 5;
  RowFile file(folder_, kWidth);
  std::map<std::int64_t, std::vector<float>> expected;
  RandomStream random{.key = 3};
  for (int round = 0; round < 6; ++round) {
    const Threads threads(1 + round % 3);
    Ids slots = some_ids(random, 20'000, 4000);
    std::erase_if(slots, [](std::int64_t slot) { return slot < 0; });
    if (round % 2 == 0) std::reverse(slots.begin(), slots.end());
    const std::vector<float> rows = random_values(slots.size() * kWidth, static_cast<std::uint64_t>(round));
    std::vector<const float*> addresses;
    for (std::size_t i = 0; i < slots.size(); ++i) addresses.push_back(rows.data() + i * kWidth);
    file.write(slots, addresses);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto row = rows.begin() + static_cast<std::ptrdiff_t>(i * kWidth);
      expected[slots[i]].assign(row, row + kWidth);
    }
    Ids all;
    std::vector<float> values;
    for (const auto& [slot, row] : expected) {
      all.push_back(slot);
      values.insert(values.end(), row.begin(), row.end());
    }
    std::vector<float> found(values.size());
    file.read_each(all,
                   [&](std::size_t i, const float* row) { std::copy_n(row, kWidth, &found[i * kWidth]); });
    EXPECT_EQ(found, values) << round;
  }
}

TEST_F(RowsOnDisk, AreRemovedWithTheirProcessAndNotBefore) {
  fs::create_directories(folder_ / "hstu-rows-killed");
  std::ofstream(folder_ / "hstu-rows-killed" / "in-use") << "";
  fs::create_directories(folder_ / "another");
  {
    const RowFile first(folder_, 3);
    EXPECT_FALSE(fs::exists(folder_ / "hstu-rows-killed"));
    const RowFile second(folder_, 3);
    EXPECT_TRUE(fs::exists(first.folder()));
    EXPECT_EQ(folders(), 3);
  }
  EXPECT_EQ(folders(), 1) << "what is not ours stays";
}

TEST_F(RowsOnDisk, NameTheFolderThatCannotBeWritten) {
  std::ofstream(folder_ / "file") << "";
  EXPECT_THROW(RowFile(folder_ / "file", 3), Error);
}

// A limit on the size of files takes the place of a full disk.
TEST_F(RowsOnDisk, SayThatTheDiskIsFull) {
  RowFile file(folder_, 1024);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1 << 20, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  for (std::int64_t round = 0; round < 100 && message.empty(); ++round) {
    try {
      file.write_each(range(1024 * round, 1024 * round + 1024),
                      [](std::size_t, float* row) { std::fill_n(row, 1024, 1.0f); });
    } catch (const Error& error) {
      message = error.what();
    }
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, AllOf(HasSubstr("cannot be written to " + file.folder().string()),
                             HasSubstr("Is the disk full?")));
}

// A step reads 70 rows at most, and the table has up to 300. Then a cache of 80 is above the host's.
TEST_F(RowsOnDisk, AgreeWithTheContractOverRandomSteps) {
  for (const Evict evict : {Evict::lru, Evict::lfu, Evict::never}) {
    RandomStream random{.key = 77};
    const auto draw = [&](std::int64_t bound) {
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
    };
    for (const std::int64_t cache_rows : {0, 80}) {
      TableWalk walk({.capacity = 120, .evict = evict, .admit_after = 2, .ttl = 700}, 300, draw, cache_rows,
                     host_context(), folder_, 70);
      for (int step = 0; step < 200; ++step) EXPECT_NO_THROW(walk.step()) << step;
      EXPECT_GT(walk.counts().hits, 0);
    }
  }
  EXPECT_EQ(folders(), 0);
}

}  // namespace
}  // namespace hstu
