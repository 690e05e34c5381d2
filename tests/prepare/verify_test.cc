#include "hstu/prepare/verify.h"

#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events/yambda_log.h"
#include "hstu/base/error.h"
#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/dataset.h"
#include "hstu/events/builtin_schemas.h"
#include "hstu/mlcommons/mlcommons_published.h"
#include "hstu/prepare/prepare.h"
#include "prepare/verified.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::HasSubstr;
using Status = FileVerdict::Status;

std::vector<YambdaEvent> some_events() {
  std::vector<YambdaEvent> events;
  for (std::int64_t i = 0; i < 60; ++i) {
    events.push_back({.uid = 1 + i / 20,
                      .timestamp = i % 20 * 5,
                      .item_id = i % 7,
                      .event_type = "listen",
                      .played_ratio_pct = i});
  }
  return events;
}

Path write_dataset() {
  const Path input = temporary_folder();
  write_yambda(input, some_events());
  prepare(yambda_schema(input, {.test_days = 0}), input, input / "ds");
  open_anchor_index(Dataset(input / "ds"), {.min_history = 3, .window_seconds = 50, .users = {}});
  return input / "ds";
}

Path write_cache(const Path& input = temporary_folder(), std::size_t events = 60) {
  std::filesystem::create_directories(input);
  std::vector<YambdaEvent> log = some_events();
  log.resize(events);
  write_yambda(input, log);
  prepare_mlcommons(input, input / "out", {.test_days = 0}, {.history_length = 5, .min_history = 5});
  return input / "out";
}

std::map<std::string, FileVerdict> verdicts_of(const Path& folder) {
  std::map<std::string, FileVerdict> verdicts;
  for (const FileVerdict& verdict : verify(folder)) verdicts[verdict.file] = verdict;
  return verdicts;
}

void alter(const Path& file, std::int64_t offset, char byte) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(offset);
  stream.put(byte);
}

TEST(VerifyDataset, FindsNothingWrongWithWhatPrepareWrote) {
  const Path folder = write_dataset();
  EXPECT_TRUE(wrong(folder).empty());
  EXPECT_EQ(verdicts_of(folder).size(),
            read_manifest(folder).columns.size() + 3);  // manifest, events, anchors
}

TEST(VerifyDataset, NamesAlteredTornAndMissingFiles) {
  const Path folder = write_dataset();
  alter(folder / kItemFile, 130, 77);
  std::filesystem::resize_file(folder / kActionFile, 150);
  std::filesystem::remove(folder / kTimestampFile);
  const auto verdicts = verdicts_of(folder);
  EXPECT_THAT(verdicts.at(kItemFile).remark, HasSubstr("checksum"));
  EXPECT_THAT(verdicts.at(kActionFile).remark, HasSubstr("found 150"));
  EXPECT_EQ(verdicts.at(kTimestampFile).status, Status::kMissing);
  EXPECT_EQ(wrong(folder).size(), 3u);
}

TEST(VerifyDataset, FindsCountsThatDoNotBelongToTheColumns) {
  const Path folder = write_dataset();
  Manifest manifest = read_manifest(folder);
  manifest.counts.items -= 1;
  write_file(folder / kManifestFile, manifest_to_json(manifest));
  EXPECT_EQ(wrong(folder), std::vector<std::string>{"events"});
}

TEST(VerifyDataset, FindsAnAlteredIndexOfAnchors) {
  const Path folder = write_dataset();
  for (const auto& entry : std::filesystem::directory_iterator(folder / kAnchorFolder)) {
    if (entry.is_directory()) alter(entry.path() / "training.npy", 128, 9);
  }
  EXPECT_EQ(wrong(folder), std::vector<std::string>{kAnchorFolder});
}

TEST(VerifyCache, FindsNothingWrongWithWhatPrepareWroteInOrAroundIt) {
  const Path folder = write_cache();
  EXPECT_TRUE(wrong(folder).empty());
  EXPECT_TRUE(wrong(folder / "hstu_cache_L5").empty());
  EXPECT_EQ(verdicts_of(folder).size(),
            14u + 6u);  // columns; store_meta.json, users, popularity, three tables
}

TEST(VerifyCache, NamesTornAndMissingFilesAndMetadataInAnotherForm) {
  const Path folder = write_cache(), cache = folder / "hstu_cache_L5";
  std::filesystem::resize_file(cache / "flat_uid.npy", 200);
  std::filesystem::remove(cache / "user_end.npy");
  EXPECT_EQ(wrong(folder), (std::vector<std::string>{"flat_uid.npy", "user_end.npy"}));
  write_file(cache / "store_meta.json", "{\"num_users\":3,\"total_events\":60}");
  EXPECT_EQ(wrong(folder), std::vector<std::string>{"store_meta.json"});
  std::filesystem::remove(cache / "_READY");
  EXPECT_EQ(wrong(folder), std::vector<std::string>{"_READY"});
}

TEST(VerifyCache, LooksAtEveryCacheAndTableOfAFolder) {
  const Path folder = write_cache(), other = write_cache(folder.parent_path() / "other", 50);
  std::filesystem::copy(folder / "hstu_cache_L5", folder / "hstu_cache_L9",
                        std::filesystem::copy_options::recursive);
  EXPECT_TRUE(wrong(folder).empty());
  std::filesystem::resize_file(folder / "hstu_cache_L9" / "flat_uid.npy", 200);
  std::filesystem::resize_file(folder / "train_sessions.parquet", 200);
  std::filesystem::remove(folder / "session_index.parquet");
  EXPECT_EQ(wrong(folder), (std::vector<std::string>{"hstu_cache_L9/flat_uid.npy", "session_index.parquet",
                                                     "train_sessions.parquet"}));
  std::filesystem::copy(other / "train_sessions.parquet", folder / "train_sessions.parquet",
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(verdicts_of(folder).at("train_sessions.parquet").remark,
              HasSubstr("expected 60 events, found 50"));
}

TEST(VerifyCache, ComparesYambda5bWithThePublishedDigests) {
  const Path folder = write_cache(), cache = folder / "hstu_cache_L5";
  write_file(cache / "store_meta.json", "{\"num_users\": 1000000, \"total_events\": 4763272693}");
  const auto verdicts = verdicts_of(cache);
  EXPECT_THAT(verdicts.at("flat_uid.npy").remark, HasSubstr("published SHA-256"));
  EXPECT_EQ(verdicts.at("flat_uid.npy").status, Status::kDiffers);
  EXPECT_EQ(verdicts.at("store_meta.json").status, Status::kOk);  // it is the published one, byte for byte
  EXPECT_EQ(verdicts.at("positions_L4086.npy").status, Status::kMissing);
  EXPECT_THAT(verdicts.at("item_popularity.npy").remark, HasSubstr("published MD5"));
}

TEST(Verify, RefusesAFolderThatIsNeither) {
  EXPECT_THROW(verify(temporary_folder()), UsageError);
}

}  // namespace
}  // namespace hstu
