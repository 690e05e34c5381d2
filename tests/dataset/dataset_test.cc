#include "hstu/dataset/dataset.h"

#include <gtest/gtest.h>

#include "batching/small_data.h"

namespace hstu {
namespace {

using small::expect_error;

small::Data example() {
  return small::write({{.user = 9, .time = 5, .item = 1, .action = 0x81, .organic = 1},
                       {.user = 4, .time = 7, .item = 3, .action = 0x84, .organic = 0},
                       {.user = 9, .time = 2, .item = 2, .action = 2, .organic = 1}});
}

TEST(Dataset, ReadsWhatTheWriterWrote) {
  const small::Data data = example();
  const Dataset dataset(data.folder);
  EXPECT_EQ(dataset.events(), 3);
  EXPECT_EQ(dataset.users(), 2);
  EXPECT_EQ(std::vector(dataset.user_ids().begin(), dataset.user_ids().end()),
            (std::vector<std::int64_t>{4, 9}));
  EXPECT_EQ(dataset.events_of(0).last_range(), (PositionRange{0, 1}));
  EXPECT_EQ(dataset.events_of(1).last_range(), (PositionRange{1, 3}));
  for (std::int64_t p = 0; p < 3; ++p) {
    EXPECT_EQ(dataset.item()[p], data.at(p).item);
    EXPECT_EQ(dataset.time()[p], data.at(p).time);
    EXPECT_EQ(dataset.action()[static_cast<std::size_t>(p)], data.at(p).action);
    EXPECT_EQ(dataset.context("is_organic")[p], data.at(p).organic);
  }
  EXPECT_EQ(dataset.user_at(0), 0);
  EXPECT_EQ(dataset.user_at(1), 1);
  EXPECT_EQ(dataset.user_at(2), 1);
  EXPECT_EQ(dataset.attribute("artist_id").of(7), 2);
}

TEST(Dataset, ReadsWideIdsAndTimes) {
  const std::int64_t wide = std::int64_t{1} << 40;
  const small::Data data = small::write({{.user = wide, .time = wide + 1, .item = wide + 2, .action = 0x81}});
  const Dataset dataset(data.folder);
  EXPECT_EQ(dataset.item().type(), "<i8");
  EXPECT_EQ(dataset.item()[0], wide + 2);
  EXPECT_EQ(dataset.time()[0], wide + 1);
  EXPECT_EQ(dataset.user_ids()[0], wide);
}

TEST(Dataset, AnAttributeIsZeroForItemsItDoesNotReach) {
  const small::Data data = example();
  const Dataset dataset(data.folder);
  const AttributeColumn& artist = dataset.attribute("artist_id");
  EXPECT_EQ(artist.of(artist.parts().front().values.size() - 1), data.artist.back());
  EXPECT_EQ(artist.of(artist.parts().front().values.size()), 0);
  EXPECT_EQ(artist.of(-1), 0);
}

TEST(Dataset, RefusesAFolderWithoutManifest) {
  const Path folder = small::fresh_folder("empty");
  std::filesystem::create_directories(folder);
  expect_error<UsageError>([&] { Dataset{folder}; }, {"manifest.json", "hstu prepare"});
}

TEST(Dataset, NamesAMissingFile) {
  const small::Data data = example();
  std::filesystem::remove(data.folder / "timestamp.npy");
  expect_error<Error>([&] { Dataset{data.folder}; }, {"timestamp.npy"});
}

TEST(Dataset, NamesATornFile) {
  const small::Data data = example();
  std::filesystem::resize_file(data.folder / "attribute_album_id.npy", 140);
  expect_error<Error>([&] { Dataset{data.folder}; }, {"attribute_album_id.npy", "140"});
}

TEST(Dataset, NamesAFileOfAnotherType) {
  const small::Data data = example();
  // As many bytes, but <i4 and <f4 in place of <u4.
  write_npy(data.folder / "item.npy", std::vector<std::int32_t>{1, 2, 3});
  expect_error<Error>([&] { Dataset{data.folder}; }, {"item.npy", "<i4"});
  write_npy(data.folder / "item.npy", std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6});
  expect_error<Error>([&] { Dataset{data.folder}; }, {"item.npy", "<u4", "<u2"});
}

TEST(Dataset, RefusesOffsetsThatDoNotAscend) {
  const small::Data data = example();
  write_npy(data.folder / "user_offsets.npy", std::vector<std::int64_t>{0, 4, 3});
  expect_error<Error>([&] { Dataset{data.folder}; }, {"user_offsets.npy", "ascending"});
}

TEST(Dataset, RefusesUsersThatDoNotAscend) {
  const small::Data data = example();
  write_npy(data.folder / "user_ids.npy", std::vector<std::int64_t>{9, 9});
  expect_error<Error>([&] { Dataset{data.folder}; }, {"user_ids.npy", "ascending"});
}

TEST(Dataset, SuggestsTheNearestColumn) {
  const Dataset dataset(example().folder);
  expect_error<UsageError>([&] { dataset.attribute("artist"); }, {"\"artist\"", "artist_id"});
  expect_error<UsageError>([&] { dataset.context("organic"); }, {"\"organic\"", "is_organic"});
}

}  // namespace
}  // namespace hstu
