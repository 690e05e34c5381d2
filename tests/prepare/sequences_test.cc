// Logs of sequences as datasets: from files to columns, and the counts of real ones.
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/columns/sequence_survey.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/names.h"
#include "hstu/events/builtin_schemas.h"
#include "hstu/prepare/prepare.h"
#include "prepare/verified.h"
#include "temporary_folder.h"
#include "test_data.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Schema schema_of(const SequenceQuestions& questions) {
  return sequences_schema(questions.files, survey_sequences(questions).format, TimeUnit::kSeconds, true);
}

// "user: item@time item@time" of each user.
std::vector<std::string> histories(const Path& folder) {
  const Dataset dataset(folder);
  std::vector<std::string> lines;
  for (const Segment& segment : dataset.segments()) {
    for (std::int64_t u = 0; u < segment.users(); ++u) {
      std::string line = fmt::format("{}:", segment.user_ids()[static_cast<std::size_t>(u)]);
      const PositionRange range = segment.events_of(u);
      for (std::int64_t p = range.begin; p < range.end; ++p)
        line += fmt::format(" {}@{}", dataset.item()[p], dataset.time()[p]);
      lines.push_back(line);
    }
  }
  return lines;
}

class PrepareSequences : public testing::Test {
 protected:
  Path file(const char* name, const std::string& text) const {
    write_file(folder_ / name, text);
    return folder_ / name;
  }
  Path output() { return folder_ / fmt::format("ds-{}", outputs_++); }

  std::string refusal(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  Path folder_ = temporary_folder();
  int outputs_ = 0;
};

TEST_F(PrepareSequences, WithoutTimesTheOrderIsTheTime) {
  const Path ds = output();
  const Manifest manifest =
      prepare(schema_of({.files = {file("a", "7 3 1 2 1\n5 9 8 9 9\n7 4 4 4 4\n")}}), "", ds);
  EXPECT_THAT(histories(ds), ElementsAre("5: 9@0 8@1 9@2 9@3", "7: 3@0 1@1 2@2 1@3 4@4 4@5 4@6 4@7"));
  EXPECT_EQ(manifest.times, Times::kOrder);
  EXPECT_EQ(read_manifest(ds).times, Times::kOrder);
  EXPECT_EQ(manifest.ties, std::nullopt);
  EXPECT_EQ(manifest.counts,
            (EventCounts{.events = 12, .users = 2, .items = 6, .rankable = 12, .positives = 12}));
  EXPECT_THAT(wrong(ds), IsEmpty());
}

TEST_F(PrepareSequences, IdsOf41BitsAndMoreArrive) {
  const Path ds = output();
  prepare(schema_of(
              {.files = {file("a", "1099511627776 16777217 1099511627777 16777217 9223372036854775806\n")}}),
          "", ds);
  EXPECT_THAT(histories(ds),
              ElementsAre("1099511627776: 16777217@0 1099511627777@1 16777217@2 9223372036854775806@3"));
}

TEST_F(PrepareSequences, TiesKeepTheOrderOfTheRows) {
  const Path ds = output();
  const Manifest manifest =
      prepare(schema_of({.files = {file("a", "2 9 50\n1 5 20\n1 4 10\n1 3 20\n1 2 20\n2 8 60\n")}}), "", ds);
  EXPECT_THAT(histories(ds), ElementsAre("1: 4@10 5@20 3@20 2@20", "2: 9@50 8@60"));
  EXPECT_EQ(manifest.ties, (Ties{.neighbours = 2, .last_pairs = 1, .seed = {}}));
  EXPECT_EQ(read_manifest(ds).ties, manifest.ties);
}

TEST_F(PrepareSequences, NamesKeepTheirNumbersInWhatIsAppended) {
  const Path ds = output();
  prepare(schema_of({.files = {file("a", "ana milk 10\nbob bread 20\n")}}), "", ds);
  const Manifest before = read_manifest(ds);
  const auto id_of = [&](const Path& folder, const char* name) {
    const Names names(folder, read_manifest(folder), "item");
    for (std::int64_t row = 0; row < names.size(); ++row)
      if (names.name(row) == name) return id_of_text(name);
    return std::int64_t{-1};
  };
  const std::int64_t milk = id_of(ds, "milk");
  EXPECT_EQ(milk, id_of_text("milk"));
  // The new file alone looks like numbers.
  const SequenceQuestions more{.files = {file("b", "ana 7 30\n")}, .user_texts = true, .item_texts = true};
  const AppendReport report = append(schema_of(more), "", ds);
  EXPECT_EQ(report.new_users, 0);
  EXPECT_EQ(id_of(ds, "milk"), milk);
  EXPECT_EQ(read_manifest(ds).ties, std::nullopt);
  EXPECT_THAT(refusal([&] { append(schema_of({.files = {file("c", "1 2 30\n")}}), "", ds); }),
              HasSubstr("ids that are texts: expected item, user, found none"));
}

TEST_F(PrepareSequences, AnAppendThatNeedsAllEventsIsRefused) {
  const Path ordered = output(), timed = output(), filtered = output(), shuffled = output();
  const Path rows = file("rows", "1 5 10\n1 6 20\n2 5 10\n2 6 30\n"), lines = file("lines", "1 5 6 7\n");
  prepare(schema_of({.files = {lines}}), "", ordered);
  EXPECT_THAT(refusal([&] { append(schema_of({.files = {lines}}), "", ordered); }),
              HasSubstr("its times are an order"));
  prepare(schema_of({.files = {rows}}), "", timed);
  EXPECT_THAT(refusal([&] { append(schema_of({.files = {lines}}), "", timed); }),
              HasSubstr("times: expected seconds, found an order"));
  Schema core = schema_of({.files = {rows}});
  core.filters.core = 2;
  EXPECT_THAT(refusal([&] { append(core, "", timed); }), HasSubstr("new events are a part alone"));
  prepare(core, "", filtered);
  EXPECT_THAT(refusal([&] { append(schema_of({.files = {rows}}), "", filtered); }),
              HasSubstr("the dataset was made with them"));
  Schema shuffle = schema_of({.files = {rows}});
  shuffle.ties = TieRule::kShuffle;
  prepare(shuffle, "", shuffled);
  EXPECT_THAT(refusal([&] { append(schema_of({.files = {rows}}), "", shuffled); }),
              HasSubstr("ties = \"shuffle\""));
}

TEST_F(PrepareSequences, TheManifestStatesFiltersAndWhatTheyLeftOut) {
  const Path ds = output();
  Schema schema = schema_of({.files = {file("a", "1 5 5 6\n2 5 6 6\n3 9 8 7\n")}});
  schema.filters = {.duplicates = Duplicates::kFirst, .core = 2};
  const Manifest manifest = prepare(schema, "", ds);
  EXPECT_THAT(histories(ds), ElementsAre("1: 5@0 6@1", "2: 5@0 6@1"));
  FilterReport report;
  report.rules = schema.filters;
  report.duplicates = 2;
  report.core = {.users = 1, .items = 3, .events = 3};
  report.core_rounds = 3;  // items, then the user, then nothing
  EXPECT_EQ(manifest.filters, report);
  EXPECT_EQ(read_manifest(ds).filters, report);
}

TEST_F(PrepareSequences, ALogThatIsLeftOutAsAWholeIsAnError) {
  Schema schema = schema_of({.files = {file("a", "1 5 6 7\n")}});
  schema.filters.core = 2;
  EXPECT_THAT(refusal([&] { prepare(schema, "", output()); }), HasSubstr("no event is left: of 3 events"));
}

TEST_F(PrepareSequences, ReadsMovieLensByName) {
  const Path ds = output(), ratings = file("ratings.dat", "2::10::5::300\n1::20::1::200\n1::10::3::100\n");
  const Manifest manifest = prepare(movielens_sequences_schema({ratings}), "", ds);
  EXPECT_THAT(histories(ds), ElementsAre("1: 10@100 20@200", "2: 10@300"));
  EXPECT_EQ(manifest.counts.positives, 3);
}

TEST_F(PrepareSequences, TheNamesOfFilesAreNoPatterns) {
  const Path ds = output();
  file("ax.txt", "8 1 2 3\n");
  prepare(schema_of({.files = {file("a*.txt", "7 1 2 3\n")}}), "", ds);
  EXPECT_THAT(histories(ds), ElementsAre("7: 1@0 2@1 3@2"));
}

TEST_F(PrepareSequences, AnyFormOfTheSameLogGivesTheSameDataset) {
  const Path a = output(), b = output();
  prepare(schema_of({.files = {file("a", "7 1 2\n3 5 6\n")}, .times = {file("t", "7 10 20\n3 5 5\n")}}), "",
          a);
  prepare(schema_of({.files = {file("b", "3,5,5\n7,2,20\n3,6,5\n7,1,10\n")}}), "", b);
  EXPECT_EQ(read_manifest(a).id, read_manifest(b).id);
}

TEST_F(PrepareSequences, ASchemaWithoutActionsHasOnlyEvents) {
  write_file(folder_ / "log.csv", "who,what\nb,y\na,x\na,z\nb,y\n");
  write_file(folder_ / "s.toml",
             "name = \"own\"\nfiles = [\"log.csv\"]\nuser = \"who\"\nitem = \"what\"\ntimes = \"order\"\n"
             "keep_names = [\"item\"]\n[filter]\nduplicates = \"first\"\n");
  const Path ds = output();
  const Manifest manifest = prepare(read_schema(folder_ / "s.toml"), folder_, ds);
  EXPECT_EQ(manifest.label, "event");
  EXPECT_THAT(manifest.pools, ElementsAre("event"));
  EXPECT_EQ(manifest.times, Times::kOrder);
  EXPECT_EQ(manifest.counts,
            (EventCounts{.events = 3, .users = 2, .items = 3, .rankable = 3, .positives = 3}));
}

// The counts of data sets as others publish them.
struct Counts {
  std::int64_t users, items, events;
};
void expect_counts(const Manifest& manifest, const Counts& counts) {
  EXPECT_EQ(manifest.counts.users, counts.users);
  EXPECT_EQ(manifest.counts.items, counts.items);
  EXPECT_EQ(manifest.counts.events, counts.events);
}

TEST_F(PrepareSequences, RealBeauty) {
  HSTU_NEEDS_DATA(beauty, "retrieval/beauty");
  const SequenceQuestions questions{.files = {beauty / "Beauty.txt"}, .times = {beauty / "Beauty_time.txt"}};
  const Manifest manifest = prepare(schema_of(questions), "", output());
  expect_counts(manifest, {22'363, 12'101, 198'502});
  EXPECT_EQ(manifest.ties, (Ties{.neighbours = 77'402, .last_pairs = 9'719, .seed = {}}));
  // It is a 5-core, so that nothing leaves.
  Schema core = schema_of(questions);
  core.filters.core = 5;
  const Manifest filtered = prepare(core, "", output());
  expect_counts(filtered, {22'363, 12'101, 198'502});
  EXPECT_EQ(filtered.filters->core_rounds, 1);
  // Ties do not change by their order; the events do.
  Schema shuffle = schema_of(questions);
  shuffle.ties = TieRule::kShuffle;
  const Manifest shuffled = prepare(shuffle, "", output());
  EXPECT_EQ(shuffled.ties, (Ties{.neighbours = 77'402, .last_pairs = 9'719, .seed = 1}));
  EXPECT_NE(shuffled.columns.at(kItemFile).checksum, manifest.columns.at(kItemFile).checksum);
  EXPECT_EQ(shuffled.columns.at(kTimestampFile), manifest.columns.at(kTimestampFile));
}

TEST_F(PrepareSequences, RealSports) {
  HSTU_NEEDS_DATA(sports, "retrieval/sports");
  const Manifest manifest = prepare(schema_of({.files = {sports / "Sports_and_Outdoors.txt"},
                                               .times = {sports / "Sports_and_Outdoors_time.txt"}}),
                                    "", output());
  expect_counts(manifest, {35'598, 18'357, 296'337});
  EXPECT_EQ(manifest.ties, (Ties{.neighbours = 124'223, .last_pairs = 16'049, .seed = {}}));
}

TEST_F(PrepareSequences, RealMovieLens1MInOrder) {
  HSTU_NEEDS_DATA(movies, "retrieval/ml-1m");
  const Path ds = output();
  const Manifest manifest =
      prepare(schema_of({.files = {movies / "ml-1m-order-1.txt", movies / "ml-1m-order-2.txt"}}), "", ds);
  expect_counts(manifest, {6'040, 3'416, 999'611});
  EXPECT_EQ(manifest.times, Times::kOrder);
  EXPECT_EQ(manifest.time, (TimeRange{.min = 0, .max = 2'276}));  // the longest user has 2,277 events
}

TEST_F(PrepareSequences, RealMovieLens100KAndLatestSmall) {
  HSTU_NEEDS_DATA(old, "ml-100k/u.data");
  const Manifest manifest = prepare(movielens_sequences_schema({old}), "", output());
  expect_counts(manifest, {943, 1'682, 100'000});
  EXPECT_EQ(manifest.ties, (Ties{.neighbours = 50'561, .last_pairs = 415, .seed = {}}));
  HSTU_NEEDS_DATA(latest, "retrieval/ml-latest-small/ratings.csv");
  expect_counts(prepare(movielens_sequences_schema({latest}), "", output()), {610, 9'724, 100'836});
}

}  // namespace
}  // namespace hstu
