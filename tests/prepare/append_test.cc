// A dataset with segments against the one that a single prepare makes of all logs.
#include "hstu/prepare/append.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/base/text.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/names.h"
#include "hstu/events/log_stream.h"
#include "hstu/prepare/prepare.h"
#include "prepare/shop_days.h"
#include "prepare/verified.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// All that a model can learn of an event, as texts.
using Event = std::tuple<std::int64_t, std::string, int, std::string, std::string>;

class Reader {
 public:
  explicit Reader(const Path& folder)
      : dataset(folder),
        users_(folder, dataset.manifest(), "user"),
        items_(folder, dataset.manifest(), "item"),
        devices_(folder, dataset.manifest(), "context_device"),
        brands_(folder, dataset.manifest(), "attribute_brand") {}

  Event at(std::int64_t p) const {
    const std::int64_t item = dataset.item()[p];
    return {dataset.time()[p], item_name(item), dataset.action()[static_cast<std::size_t>(p)],
            std::string(*devices_.name_of(dataset.context("device")[p])),
            std::string(*brands_.name_of(dataset.attribute("brand").of(item)))};
  }
  std::string item_name(std::int64_t item) const { return std::string(*items_.name_of(item)); }
  std::string user(std::int64_t u) const {
    return std::string(*users_.name_of(dataset.user_ids()[static_cast<std::size_t>(u)]));
  }
  std::map<std::string, std::vector<std::int64_t>> positions() const {
    std::map<std::string, std::vector<std::int64_t>> all;
    for (std::int64_t u = 0; u < dataset.users(); ++u)
      dataset.events_of(u).each([&](std::int64_t p) { all[user(u)].push_back(p); });
    return all;
  }

  Dataset dataset;

 private:
  Names users_, items_, devices_, brands_;
};

// Appends day after day to FOLDER/chain; one prepare of all days makes FOLDER/whole.
void make_both(const Path& folder, const std::vector<Row>& rows, std::int64_t days, std::int64_t first_days) {
  write_log(folder / "all", rows, 0, days);
  prepare(shop_schema(), folder / "all", folder / "whole");
  write_log(folder / "first", rows, 0, first_days);
  prepare(shop_schema(), folder / "first", folder / "chain");
  for (std::int64_t day = first_days; day < days; ++day) {
    write_log(folder / fmt::format("log-{}", day), rows, day, day + 1);
    append(shop_schema(), folder / fmt::format("log-{}", day), folder / "chain");
  }
}

DataOptions history_options(HistoryStrategy strategy, std::int64_t length) {
  DataOptions options;
  options.strategy = strategy;
  options.history_length = length;
  options.min_history = 2;
  options.window_seconds = kDay;
  options.scan_limit = 25;
  return options;
}

// The histories of all events, by user and time.
std::vector<std::vector<std::string>> histories(const Reader& reader, const DataOptions& options) {
  const SampleBuilder builder(reader.dataset, options);
  std::vector<std::int64_t> positions;
  for (const auto& [user, of_user] : reader.positions())
    positions.insert(positions.end(), of_user.begin(), of_user.end());
  const Samples samples = builder.build(positions);
  std::vector<std::vector<std::string>> all;
  for (std::size_t b = 0; b < positions.size(); ++b) {
    std::vector<std::string>& history = all.emplace_back();
    for (auto i = static_cast<std::size_t>(samples.history_offsets[b]);
         i < static_cast<std::size_t>(samples.history_offsets[b + 1]); ++i) {
      const auto item = static_cast<std::size_t>(samples.history_item[i]);
      history.push_back(fmt::format("{} {} {}", samples.history_time[i],
                                    reader.item_name(samples.items[item]), samples.history_action[i]));
    }
  }
  return all;
}

TEST(Append, GivesTheEventsOfOnePrepareByUserAndTime) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Path folder = temporary_folder() / fmt::format("{}", seed);
    make_both(folder, random_log(seed, 5, seed % 3 == 0 ? 0 : 4), 5, 1 + static_cast<std::int64_t>(seed % 2));
    const Reader whole(folder / "whole"), chain(folder / "chain");
    const auto expected = whole.positions(), found = chain.positions();
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [user, positions] : expected) {
      std::vector<Event> mine, theirs;
      for (const std::int64_t p : positions) theirs.push_back(whole.at(p));
      for (const std::int64_t p : found.at(user)) {
        mine.push_back(chain.at(p));
        EXPECT_EQ(chain.user(chain.dataset.user_at(p)), user);
      }
      ASSERT_EQ(mine, theirs) << "seed " << seed << ", user " << user;
    }
    EXPECT_EQ(chain.dataset.manifest().counts, whole.dataset.manifest().counts) << seed;
    EXPECT_EQ(chain.dataset.manifest().time, whole.dataset.manifest().time);
    EXPECT_THAT(wrong(folder / "chain"), IsEmpty());
    for (const HistoryStrategy strategy : {HistoryStrategy::interleaved, HistoryStrategy::last_n}) {
      for (const std::int64_t length : {3, 20}) {
        const DataOptions options = history_options(strategy, length);
        ASSERT_EQ(histories(chain, options), histories(whole, options)) << "seed " << seed << ", " << length;
      }
    }
  }
}

TEST(Append, AnchorsOfLaterSegmentsFollowInTheirOrder) {
  const Path folder = temporary_folder();
  make_both(folder, random_log(9, 4, 0), 4, 2);
  const AnchorRule rule{
      .min_history = 3, .window_seconds = kDay, .users = {.train_fraction = 0.7, .salt = 5}};
  const Reader whole(folder / "whole"), chain(folder / "chain");
  const AnchorIndex expected = open_anchor_index(whole.dataset, rule),
                    found = open_anchor_index(chain.dataset, rule);
  const auto events = [](const Reader& reader, const AnchorList& list) {
    std::multiset<std::pair<std::string, Event>> all;
    for (const std::int64_t p : list.first(list.size()))
      all.emplace(reader.user(reader.dataset.user_at(p)), reader.at(p));
    return all;
  };
  EXPECT_EQ(events(chain, found.training_users), events(whole, expected.training_users));
  EXPECT_EQ(events(chain, found.held_out_users), events(whole, expected.held_out_users));
  EXPECT_EQ(found.time_min, expected.time_min);
  EXPECT_EQ(found.time_max, expected.time_max);
  std::int64_t windows = 0;
  for (const std::int64_t count : found.segment_windows) windows += count;
  EXPECT_EQ(windows, found.windows());
  EXPECT_EQ(found.segment_windows.size(), 3u);
  for (std::int64_t w = 0; w < found.windows(); ++w) {
    for (const std::int64_t p : found.training_users.window(w)) {
      EXPECT_GE(chain.dataset.time()[p], found.times[static_cast<std::size_t>(w)].min);
      EXPECT_LE(chain.dataset.time()[p], found.times[static_cast<std::size_t>(w)].max);
    }
  }
  EXPECT_THAT(wrong(folder / "chain"), IsEmpty());
}

TEST(Append, ChangesNothingThatWasThere) {
  const Path folder = temporary_folder();
  const std::vector<Row> rows = random_log(3, 3, 5);
  write_log(folder / "0", rows, 0, 1);
  prepare(shop_schema(), folder / "0", folder / "ds");
  std::map<std::string, std::string> before;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "ds"))
    before[entry.path().filename()] = read_file(entry.path());
  const Dataset open(folder / "ds");  // somebody reads it meanwhile
  const std::string id = open.manifest().id;
  write_log(folder / "1", rows, 1, 2);
  const AppendReport report = append(shop_schema(), folder / "1", folder / "ds");
  for (const auto& [name, bytes] : before) EXPECT_EQ(read_file(folder / "ds" / name), bytes) << name;
  EXPECT_EQ(open.events(), 150);
  EXPECT_EQ(open.manifest().id, id);
  const Manifest now = read_manifest(folder / "ds");
  EXPECT_EQ(now.extended, std::vector{id});
  EXPECT_NE(now.id, id);
  EXPECT_EQ(now.counts.events, 300);
  EXPECT_GT(report.late, 0);
  EXPECT_GT(report.new_users, 0);
  EXPECT_EQ(report.duplicates, 0);
}

std::string failure_of(const Schema& schema, const Path& input, const Path& dataset) {
  try {
    append(schema, input, dataset);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Append, RefusesAnotherSchemaTheSameLogAndASplit) {
  const Path folder = temporary_folder();
  const std::vector<Row> rows = random_log(3, 2, 0);
  write_log(folder / "0", rows, 0, 1);
  write_log(folder / "1", rows, 1, 2);
  prepare(shop_schema(), folder / "0", folder / "ds");
  EXPECT_THAT(failure_of(shop_schema(), folder / "0", folder / "ds"), HasSubstr("was appended before"));
  Schema other = shop_schema();
  other.context.clear();
  EXPECT_THAT(failure_of(other, folder / "1", folder / "ds"),
              HasSubstr("context columns: expected device, found none"));
  other = shop_schema();
  other.label = "viewed";
  EXPECT_THAT(failure_of(other, folder / "1", folder / "ds"), HasSubstr("label: expected bought"));
  other = shop_schema();
  other.keep_names = {"item"};
  EXPECT_THAT(failure_of(other, folder / "1", folder / "ds"), HasSubstr("names are kept"));
  other = shop_schema();
  other.split = SplitRule{};
  EXPECT_THAT(failure_of(other, folder / "1", folder / "ds"), HasSubstr("test_days = 0"));
  EXPECT_FALSE(std::filesystem::exists(segment_folder(folder / "ds", 1)));
  EXPECT_EQ(read_manifest(folder / "ds").counts.events, 150);
}

std::map<std::string, std::string> files_of(const Path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[entry.path().lexically_relative(folder)] = read_file(entry.path());
  return files;
}

TEST(Append, ALogThatIsTheLastSegmentAddsNothingAndItsIndexIsMadeWhereOneIsMissing) {
  const Path folder = temporary_folder();
  const std::vector<Row> rows = random_log(3, 3, 4);
  for (std::int64_t day = 0; day < 3; ++day) write_log(folder / fmt::format("{}", day), rows, day, day + 1);
  prepare(shop_schema(), folder / "0", folder / "ds", {}, {}, AnchorRule{.min_history = 1, .users = {}});
  EXPECT_FALSE(append(shop_schema(), folder / "1", folder / "ds").repeated);
  const auto undisturbed = files_of(folder / "ds");
  EXPECT_TRUE(undisturbed.contains("segments/0001/anchors/m1_w86400/manifest.json"));
  EXPECT_TRUE(append(shop_schema(), folder / "1", folder / "ds").repeated);
  EXPECT_EQ(files_of(folder / "ds"), undisturbed);
  std::filesystem::remove_all(folder / "ds/segments/0001/anchors");
  EXPECT_TRUE(append(shop_schema(), folder / "1", folder / "ds").repeated);
  EXPECT_EQ(files_of(folder / "ds"), undisturbed);
  append(shop_schema(), folder / "2", folder / "ds");
  EXPECT_THAT(failure_of(shop_schema(), folder / "1", folder / "ds"), HasSubstr("was appended before"));
}

// The format of a log may change, so that other conditions are not refused.
TEST(Append, ReportsRulesThatHaveChanged) {
  const Path folder = temporary_folder();
  const std::vector<Row> rows = random_log(3, 4, 0);
  for (std::int64_t day = 0; day < 4; ++day) write_log(folder / fmt::format("{}", day), rows, day, day + 1);
  prepare(shop_schema(), folder / "0", folder / "ds");
  const AppendReport same = append(shop_schema(), folder / "1", folder / "ds");
  EXPECT_THAT(same.rules_now, IsEmpty());
  EXPECT_THAT(same.rules_before, IsEmpty());
  Schema other = shop_schema();
  other.actions[1].when = {parse_condition("kind != b")};
  other.rankable = {parse_condition("device != d0")};
  const AppendReport changed = append(other, folder / "2", folder / "ds");
  EXPECT_THAT(changed.rules_now, testing::ElementsAre("rankable: device != d0", "action viewed: kind != b"));
  EXPECT_THAT(changed.rules_before, testing::ElementsAre("action viewed: kind = v"));
  EXPECT_THAT(append(other, folder / "3", folder / "ds").rules_now, IsEmpty());  // as the latest
}

TEST(Append, RefusesASegmentOfAnotherDataset) {
  const Path folder = temporary_folder();
  make_both(folder, random_log(1, 3, 0), 3, 1);
  std::filesystem::rename(segment_folder(folder / "chain", 1), folder / "lost");
  EXPECT_EQ(read_manifest(folder / "chain").counts.events, 150);  // a chain ends where a segment is missing
  std::filesystem::rename(segment_folder(folder / "chain", 2), segment_folder(folder / "chain", 1));
  try {
    read_manifest(folder / "chain");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("belongs to another dataset"));
  }
}

TEST(Append, CodesFromADatasetKeepItsTexts) {
  const Path folder = temporary_folder();
  const std::vector<Row> rows = random_log(2, 3, 0);
  write_log(folder / "0", rows, 0, 1);
  write_log(folder / "2", rows, 2, 3);
  const Manifest known = prepare(shop_schema(), folder / "0", folder / "a");
  prepare(shop_schema(), folder / "2", folder / "b", {}, read_dictionaries(folder / "a", known));
  const Manifest other = read_manifest(folder / "b");
  for (const std::string of : {"context_device", "attribute_brand"}) {
    const Names mine(folder / "a", known, of), theirs(folder / "b", other, of);
    ASSERT_GE(theirs.size(), mine.size());
    for (std::int64_t row = 0; row < mine.size(); ++row) EXPECT_EQ(theirs.name(row), mine.name(row));
  }
}

// A context with more texts than a byte has values, and items beyond 32 bits, which the first day has not.
TEST(Append, ReadsColumnsOfSeveralWidths) {
  const Path folder = temporary_folder();
  const auto log = [](std::int64_t day, std::int64_t devices, std::int64_t item) {
    std::string text = "user,item,at,kind,device,brand\n";
    for (std::int64_t i = 0; i < 300; ++i)
      text +=
          fmt::format("{},{},{},b,device {},7\n", i % 4, item + i, kFirstDay + day * kDay + i, i % devices);
    return text;
  };
  Schema schema = shop_schema();
  schema.keep_names.clear();
  schema.attributes.clear();
  schema.csv->integers = {"user", "item"};
  for (const auto& [day, devices, item] : std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{
           {0, 3, 1}, {1, 300, std::int64_t{1} << 40}}) {
    std::filesystem::create_directories(folder / fmt::format("{}", day));
    write_file(folder / fmt::format("{}", day) / "log.csv", log(day, devices, item));
  }
  prepare(schema, folder / "0", folder / "ds");
  append(schema, folder / "1", folder / "ds");
  const Dataset dataset(folder / "ds");
  const Names devices(folder / "ds", dataset.manifest(), "context_device");
  std::int64_t events = 0;
  dataset.events_of(2).each([&](std::int64_t p) {
    const std::int64_t i = 2 + events % 75 * 4;  // 300 events of 4 users a day
    EXPECT_EQ(dataset.item()[p], (events < 75 ? 1 : std::int64_t{1} << 40) + i);
    EXPECT_EQ(devices.name_of(dataset.context("device")[p]),
              fmt::format("device {}", i % (events < 75 ? 3 : 300)));
    ++events;
  });
  EXPECT_EQ(events, 150);
  EXPECT_THAT(wrong(folder / "ds"), IsEmpty());
}

}  // namespace
}  // namespace hstu
