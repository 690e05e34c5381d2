#include "hstu/checkpoint/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/support.h"

namespace hstu {
namespace {

using namespace testing_checkpoint;
using testing::ElementsAre;
namespace fs = std::filesystem;

std::vector<std::int64_t> steps_of(const Path& folder) {
  std::vector<std::int64_t> steps;
  for (const auto& entry : list_checkpoints(folder)) steps.push_back(entry.step);
  return steps;
}

void make(const Path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    fs::create_directories(folder / name / "tables");
    scribble(folder / name / "manifest.json", name);
  }
}

TEST(CheckpointFolder, ListsByStepAndIgnoresWhatIsNoCheckpoint) {
  const TemporaryFolder folder;
  EXPECT_TRUE(list_checkpoints(folder / "absent").empty());
  EXPECT_FALSE(latest_checkpoint(folder).has_value());
  make(folder,
       {"step_00000010", "step_00000009", "step_123456789", "step_00000011.partial", "step_00000012.new",
        "step_00000013.old", "step_", "step_12", "step_0000001x", "other", "step_-0000001"});
  scribble(folder / "step_00000099", "a file, not a folder");
  EXPECT_THAT(steps_of(folder), ElementsAre(9, 10, 123456789));
  EXPECT_EQ(latest_checkpoint(folder)->path, folder / "step_123456789");
}

// A checkpoint that continues that of step `base`, or a whole one.
void save(const Path& folder, std::int64_t step, std::int64_t base = -1) {
  std::optional<CheckpointBase> link;
  if (base >= 0) {
    const Path path = folder / checkpoint_name(base);
    link = {{path, read_checkpoint_manifest(path)}, 1};
  }
  save_checkpoint(folder, step, {}, nlohmann::json::object(), {}, link);
}

TEST(CheckpointFolder, PruningKeepsTheNewest) {
  const TemporaryFolder folder;
  for (const int step : {1, 2, 3, 4}) save(folder, step);
  prune_checkpoints(folder, 4, 2);
  EXPECT_THAT(steps_of(folder), ElementsAre(3, 4));
}

TEST(CheckpointFolder, PruningKeepsWhatTheOthersContinue) {
  const TemporaryFolder folder;
  for (const int step : {1, 2, 5}) save(folder, step);
  save(folder, 3, 2);
  save(folder, 4, 1);
  save(folder, 6, 5);
  save(folder, 7, 5);
  prune_checkpoints(folder, 7, 1, 4);
  EXPECT_THAT(steps_of(folder), ElementsAre(1, 4, 5, 7));
}

TEST(CheckpointFolder, PruningRemovesNothingWhereAKeptManifestCannotBeRead) {
  const TemporaryFolder folder;
  for (const int step : {1, 2}) save(folder, step);
  save(folder, 3, 1);
  fs::resize_file(folder / "step_00000003" / "manifest.json", 40);
  EXPECT_THROW(prune_checkpoints(folder, 3, 1), Error);
  EXPECT_THAT(steps_of(folder), ElementsAre(1, 2, 3));
}

TEST(CheckpointFolder, PruningKeepsTheBest) {
  const TemporaryFolder folder;
  for (const int step : {1, 2, 3, 4}) save(folder, step);
  set_link(folder, kBestLink, folder / "step_00000002");
  EXPECT_EQ(linked_checkpoint(folder, kBestLink)->step, 2);
  prune_checkpoints(folder, 4, 1, 2);
  EXPECT_THAT(steps_of(folder), ElementsAre(2, 4));
  remove_link(folder, kBestLink);
  EXPECT_FALSE(linked_checkpoint(folder, kBestLink));
  EXPECT_NO_THROW(remove_link(folder, kBestLink)) << "there is none";
  prune_checkpoints(folder, 4, 1);
  EXPECT_THAT(steps_of(folder), ElementsAre(4));
}

TEST(CheckpointFolder, ClearsWhatInterruptedSavesLeft) {
  const TemporaryFolder folder;
  make(folder, {"step_00000001", "step_00000002.partial", "step_00000003.old", "step_123456789.new",
                "current.partial", "keep.partial", "notes"});
  clear_leftovers(folder);
  EXPECT_THAT(steps_of(folder), ElementsAre(1));
  EXPECT_FALSE(fs::exists(folder / "step_123456789.new"));
  EXPECT_FALSE(fs::exists(folder / "current.partial"));
  EXPECT_FALSE(fs::exists(folder / "step_00000002.partial"));
  EXPECT_FALSE(fs::exists(folder / "step_00000003.old"));
  EXPECT_TRUE(fs::exists(folder / "notes")) << "not ours";
  EXPECT_TRUE(fs::exists(folder / "keep.partial")) << "not ours";
}

TEST(CheckpointFolder, PruningNeverTouchesTheOneJustWrittenNorLaterOnes) {
  const TemporaryFolder folder;
  for (const int step : {1, 2, 8, 9}) save(folder, step);
  prune_checkpoints(folder, 2, 1);
  EXPECT_THAT(steps_of(folder), ElementsAre(2, 8, 9));
}

TEST(CheckpointFolder, KeepingZeroKeepsAll) {
  const TemporaryFolder folder;
  make(folder, {"step_00000001", "step_00000002"});
  prune_checkpoints(folder, 2, 0);
  EXPECT_THAT(steps_of(folder), ElementsAre(1, 2));
}

TEST(CheckpointFolder, CurrentLeadsToTheOneItWasSetTo) {
  const TemporaryFolder folder;
  make(folder, {"step_00000001", "step_00000002"});
  for (const char* name : {"step_00000001", "step_00000002"}) {
    set_link(folder, kCurrentLink, folder / name);
    EXPECT_EQ(fs::canonical(folder / "current"), fs::canonical(folder / name));
  }
  fs::rename(Path(folder), Path(folder).string() + "_moved");
  EXPECT_TRUE(fs::exists(Path(folder).string() + "_moved/current/manifest.json")) << "the link is relative";
  fs::rename(Path(folder).string() + "_moved", Path(folder));
  EXPECT_THAT(steps_of(folder), ElementsAre(1, 2)) << "it is no checkpoint of its own";
}

TEST(CheckpointFolder, ReplacesAFolderWhole) {
  const TemporaryFolder folder;
  make(folder, {"a", "b"});
  scribble(folder / "a" / "only_in_a", "x");
  replace_folder(folder / "b", folder / "a");
  EXPECT_EQ(read_file(folder / "a" / "manifest.json"), "b");
  EXPECT_FALSE(fs::exists(folder / "a" / "only_in_a"));
  EXPECT_FALSE(fs::exists(folder / "b"));
}

}  // namespace
}  // namespace hstu
