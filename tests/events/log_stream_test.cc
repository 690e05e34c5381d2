// One log, one dataset: whatever the order, the files, the row groups, the threads and the memory.
#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/parquet_files.h"
#include "events/yambda_log.h"
#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/dataset/dataset.h"
#include "hstu/events/builtin_schemas.h"
#include "hstu/events/log_files.h"
#include "hstu/prepare/prepare.h"
#include "prepare/verified.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::HasSubstr;

constexpr PrepareOptions kLittle{.memory = 1 << 18};  // sorting spills some dozen runs

// A log in order, of `users` users; no two events share user and time.
std::vector<YambdaEvent> some_events(std::int64_t users = 40, std::int64_t events_per_user = 100) {
  RandomStream random{.key = 3};
  const char* const types[] = {"listen", "listen", "listen", "like", "dislike", "unlike", "undislike"};
  std::vector<YambdaEvent> events;
  for (std::int64_t u = 0; u < users; ++u) {
    std::int64_t time = 0;
    for (std::int64_t i = 0; i < events_per_user; ++i) {
      time += 5 + 5 * static_cast<std::int64_t>(random.below(3'000));
      YambdaEvent event{.uid = 3 * u, .timestamp = time, .item_id = 0, .event_type = types[random.below(7)]};
      event.item_id = static_cast<std::int64_t>(random.below(500));
      event.is_organic = static_cast<std::int64_t>(random.below(2));
      if (event.event_type == "listen") event.played_ratio_pct = static_cast<std::int64_t>(random.below(120));
      events.push_back(event);
    }
  }
  return events;
}

void shuffle(std::vector<YambdaEvent>& events) {
  RandomStream random{.key = 4};
  for (std::size_t i = events.size(); i > 1; --i) std::swap(events[i - 1], events[random.below(i)]);
}

const SplitRule kSplit{.train_days = 100, .gap_minutes = 30, .test_days = 1};

std::string manifest_of(const Path& input, const std::string& name, const PrepareOptions& options = {}) {
  prepare(yambda_schema(input, kSplit), input, input / name, options);
  EXPECT_THAT(wrong(input / name), testing::IsEmpty());
  return read_file(input / name / kManifestFile);
}

TEST(LogStream, GivesTheSameBytesForAnyThreadsMemoryRowGroupsAndOrder) {
  const Path input = temporary_folder();
  std::vector<YambdaEvent> events = some_events();
  write_yambda(input, events);
  const std::string expected = manifest_of(input, "ordered");
  EXPECT_EQ(manifest_of(input, "three-threads", {.threads = 3}), expected);
  write_parquet(input / "multi_event.parquet", yambda_columns(events), 97);
  EXPECT_EQ(manifest_of(input, "small-groups", {.threads = 3}), expected);
  EXPECT_EQ(manifest_of(input, "little-memory", kLittle), expected);
  shuffle(events);
  write_parquet(input / "multi_event.parquet", yambda_columns(events), 1 << 20);
  EXPECT_EQ(manifest_of(input, "shuffled"), expected);
  write_parquet(input / "multi_event.parquet", yambda_columns(events), 61);
  EXPECT_EQ(manifest_of(input, "shuffled-little-memory", {.memory = kLittle.memory, .threads = 4}), expected);
}

TEST(LogStream, NoticesDisorderThatOnlyTheLastRowShows) {
  const Path input = temporary_folder();
  std::vector<YambdaEvent> events = some_events();
  write_yambda(input, events);
  const std::string expected = manifest_of(input, "ordered");
  // The first event of the last user comes last; with one row group, statistics cannot tell.
  std::rotate(events.end() - 100, events.end() - 99, events.end());
  write_parquet(input / "multi_event.parquet", yambda_columns(events), 1 << 20);
  EXPECT_EQ(manifest_of(input, "late"), expected);
}

TEST(LogStream, KeepsTheOrderOfTheLogInTiesWhenItSorts) {
  const Path input = temporary_folder();
  std::vector<YambdaEvent> events;
  for (std::int64_t i = 0; i < 3'000; ++i)
    events.push_back({.uid = i % 7, .timestamp = 5, .item_id = i, .event_type = "like"});
  write_yambda(input, events);
  prepare(yambda_schema(input, {.test_days = 0}), input, input / "ds", kLittle);
  const Dataset dataset(input / "ds");
  for (std::int64_t p = 1; p < dataset.events(); ++p) {
    if (dataset.user_at(p) != dataset.user_at(p - 1)) continue;
    ASSERT_LT(dataset.item()[p - 1], dataset.item()[p]);
  }
}

TEST(LogStream, ReadsFilesInTheOrderOfTheirNames) {
  const Path input = temporary_folder();
  const std::vector<YambdaEvent> events = some_events();
  write_yambda(input, events);
  Schema schema = yambda_schema(input, kSplit);
  const std::string expected = manifest_of(input, "one");
  schema.files = {"part-*.parquet"};
  for (std::size_t part = 0; part < 4; ++part) {
    const auto begin = events.begin() + static_cast<std::ptrdiff_t>(part * events.size() / 4);
    const auto end = events.begin() + static_cast<std::ptrdiff_t>((part + 1) * events.size() / 4);
    write_parquet(input / fmt::format("part-{}.parquet", part), yambda_columns({begin, end}), 300);
  }
  prepare(schema, input, input / "four", {.threads = 3});
  EXPECT_EQ(read_file(input / "four" / kManifestFile), expected);
}

TEST(LogStream, TakesTheLastAttributeInTheOrderOfTheLogAlsoWhenItSorts) {
  const Path input = temporary_folder();
  std::vector<std::optional<std::int64_t>> users, times, brands;
  for (std::int64_t i = 0; i < 2'000; ++i) {
    users.push_back(1'999 - i);
    times.push_back(7);
    brands.push_back(i);
  }
  const Array items = array<arrow::Int64Type>(std::vector<std::optional<std::int64_t>>(users.size(), 2));
  write_parquet(input / "log.parquet",
                {{"u", array<arrow::Int64Type>(users)},
                 {"t", array<arrow::Int64Type>(times)},
                 {"i", items},
                 {"brand", array<arrow::Int64Type>(brands)}},
                100);
  Schema schema;
  schema.name = "shop";
  schema.files = {"log.parquet"};
  schema.user = "u";
  schema.time = "t";
  schema.item = "i";
  schema.actions = {{.name = "any", .bit = 1, .when = {}}};
  schema.label = "any";
  schema.pools = {"any"};
  schema.attributes = {{.name = "brand", .value_column = "brand", .file = "", .item_column = ""}};
  prepare(schema, input, input / "ds", {.memory = kLittle.memory, .threads = 3});
  EXPECT_EQ(Dataset(input / "ds").attribute("brand").of(2), 1'999);
}

TEST(LogStream, RefusesAnAttributeThatTheMemoryCannotHold) {
  const Path input = temporary_folder();
  write_yambda(input, some_events(2, 3));
  write_parquet(
      input / "artist_item_mapping.parquet",
      {{"artist_id", array<arrow::UInt32Type>({1})}, {"item_id", array<arrow::UInt32Type>({2'000'000'000})}});
  try {
    prepare(yambda_schema(input, kSplit), input, input / "ds");
    FAIL() << "gigabytes were taken";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("artist_id"), HasSubstr("--memory"), HasSubstr("2000000000")));
  }
}

TEST(LogFiles, KnowTheLastTimeAndGrossDisorderFromTheFilesAlone) {
  const Path input = temporary_folder();
  std::vector<YambdaEvent> events = some_events();
  write_yambda(input, events);
  const Schema schema = yambda_schema(input, kSplit);
  const EventExtractor extractor(schema);
  const std::int64_t last = std::max_element(events.begin(), events.end(), [](const auto& a, const auto& b) {
                              return a.timestamp < b.timestamp;
                            })->timestamp;
  const LogFiles log = find_log(extractor, input);
  EXPECT_EQ(log.rows, static_cast<std::int64_t>(events.size()));
  EXPECT_EQ(log.pieces.size(), 4u);  // row groups of 1,024
  EXPECT_EQ(log.last_time, last);
  EXPECT_EQ(find_last_time(log, extractor), last);
  EXPECT_FALSE(log.unordered);
  shuffle(events);
  write_yambda(input, events);
  EXPECT_TRUE(find_log(extractor, input).unordered);
}

}  // namespace
}  // namespace hstu
