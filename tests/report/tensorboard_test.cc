#include "hstu/report/tensorboard.h"

#include <vector>

#include <gmock/gmock.h>

#include "report/event_reader.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<Path> event_files(const Path& folder) {
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

// The check value of the catalogues of checksums, and RFC 3720's of 32 zero bytes.
TEST(Crc32c, PublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
}

TEST(TensorboardWriter, NumbersBecomeScalars) {
  const Path folder = temporary_folder();
  TensorboardWriter writer(folder, {});
  writer.write({{"event", "run"}, {"seed", 1}});  // no step
  writer.write({{"event", "train"},
                {"step", 300},
                {"loss", 0.25},
                {"note", "words are not drawn"},
                {"bad_ids", {{"item", 7}}},
                {"time_s", 1000.5}});
  const auto files = event_files(folder);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].filename().string().rfind("events.out.tfevents.", 0), 0u);

  const auto events = read_event_file(read_file(files[0]));  // written, though the writer lives on
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 300);
  EXPECT_EQ(events[1].wall_time, 1000.5);
  EXPECT_THAT(events[1].scalars, ElementsAre(Pair("train/bad_ids/item", 7.0f), Pair("train/loss", 0.25f)));
}

// A resumed run cuts metrics.jsonl back to its checkpoint: no step may be drawn twice.
TEST(TensorboardWriter, IsMadeAnewFromTheLinesThatStand) {
  const Path folder = temporary_folder();
  const auto line = [](int step, double loss) {
    return Json{{"event", "train"}, {"step", step}, {"loss", loss}, {"time_s", 100.0 + step}};
  };
  {
    TensorboardWriter interrupted(folder, {});
    interrupted.write(line(10, 1.0));
    interrupted.write(line(20, 2.0));
  }
  const std::vector<Json> kept{line(10, 1.0)};
  TensorboardWriter resumed(folder, kept);
  resumed.write(line(20, 3.0));

  const auto files = event_files(folder);
  ASSERT_EQ(files.size(), 1u);
  const auto events = read_event_file(read_file(files[0]));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].scalars.at("train/loss"), 1.0f);
  EXPECT_EQ(events[2].scalars.at("train/loss"), 3.0f);
}

TEST(TensorboardWriter, AFailureIsSaidOnceAndDoesNotStopTheRun) {
  const Path folder = temporary_folder();
  // Something that cannot be removed or opened stands where the file would be.
  std::filesystem::create_directories(folder / "events.out.tfevents.0000000000.hstu" / "occupied");
  ::testing::internal::CaptureStderr();
  TensorboardWriter writer(folder, {});
  writer.write({{"event", "train"}, {"step", 1}, {"loss", 1.0}});
  writer.write({{"event", "train"}, {"step", 2}, {"loss", 1.0}});
  const std::string words = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(words, ::testing::HasSubstr("events.out.tfevents.0000000000.hstu: cannot be written"));
  EXPECT_EQ(words.find("cannot be written"), words.rfind("cannot be written"));
}

}  // namespace
}  // namespace hstu
