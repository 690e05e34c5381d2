// Sections of tables that no table has written.
#include "hstu/embedding/table_section.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/checkpoint/checkpoint.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using namespace testing_embedding;
using ::testing::HasSubstr;

// Of a table with limits, 40 rows of one value, and SGD.
struct Forged {
  Ids ids{2, 5, 30}, history{1, 2, 3, 4, 3, 1};  // (step, score) of each row
  Ids waiting{7, 8}, waiting_counts{1, 2};
  nlohmann::json limits{{"step", 3}};
};

class ForgedSection : public ::testing::Test {
 protected:
  static TableSet tables() {
    return TableSet({{.name = "t", .rows = 40, .dim = 1, .limits = {.evict = Evict::lfu, .admit_after = 3}}},
                    {.kind = RowOptimizerKind::sgd}, 1);
  }

  // What loading says; "" if it accepts.
  std::string refusal(const std::function<void(Forged&)>& change) {
    Forged forged;
    change(forged);
    const Path folder = folder_ / std::to_string(++count_);
    std::filesystem::create_directories(folder);
    CheckpointManifest manifest{
        .state = nlohmann::json::object(), .tables = nlohmann::json::array(), .files = {}};
    TableSet set = tables();
    table_sections(set)[0].save(*std::make_unique<SectionWriter>(folder, "tables/t", manifest));
    nlohmann::json description = manifest.tables[0];
    description["rows_alive"] = forged.ids.size();
    description["limits"].merge_patch(forged.limits);
    manifest.tables = nlohmann::json::array();

    SectionWriter writer(folder, "tables/t", manifest);
    const std::int64_t n = std::ssize(forged.ids);
    writer.describe(description);
    writer.begin({{"ids", DType::i64, {n}},
                  {"history", DType::i64, {n, 2}},
                  {"waiting_ids", DType::i64, {std::ssize(forged.waiting)}},
                  {"waiting_counts", DType::i64, {std::ssize(forged.waiting_counts)}},
                  {"rows", DType::f32, {n, 1}},
                  {"state", DType::f32, {n, 0}}});
    for (const Ids& column : {forged.ids, forged.history, forged.waiting, forged.waiting_counts})
      writer.write(column.data(), column.size() * sizeof(std::int64_t));
    const std::vector<float> rows(forged.ids.size(), 0.5f);
    writer.write(rows.data(), rows.size() * sizeof(float));
    writer.close();
    write_checkpoint_manifest(folder, manifest);
    try {
      Checkpoint(folder).load(table_sections(set));
    } catch (const Error& error) {
      return error.what();
    }
    EXPECT_EQ(set[0].rows_alive(), n);
    const auto places = set[0].places_by_id();
    Ids seen(places.size()), scores(places.size()), history;
    set[0].read_history(places, seen.data(), scores.data());
    for (std::size_t i = 0; i < places.size(); ++i) history.insert(history.end(), {seen[i], scores[i]});
    EXPECT_EQ(history, forged.history) << "the scores by which rows leave survive a save";
    EXPECT_EQ(set[0].waiting().by_id().ids, forged.waiting);
    EXPECT_EQ(set[0].waiting().by_id().counts, forged.waiting_counts);
    return "";
  }

 private:
  const Path folder_ = temporary_folder();
  int count_ = 0;
};

// The trap: scores that begin again after a load.
TEST_F(ForgedSection, OfAWholeTableIsAcceptedWithItsScores) {
  EXPECT_EQ(refusal([](Forged&) {}), "");
  EXPECT_EQ(refusal([](Forged& f) { f.waiting = f.waiting_counts = {}; }), "");
}

// The history of such a row was written before the first row in memory.
TEST_F(ForgedSection, RefusesIdsOutsideTheTable) {
  EXPECT_THAT(refusal([](Forged& f) { f.ids[2] = 40; }),
              HasSubstr("table t: expected ids from 0 to 39, found 40"));
  EXPECT_THAT(refusal([](Forged& f) { f.ids[0] = -1; }), HasSubstr("expected ids from 0 to 39, found -1"));
  EXPECT_THAT(refusal([](Forged& f) { f.ids[1] = 2; }), HasSubstr("expected ascending ids, found 2 after 2"));
}

TEST_F(ForgedSection, RefusesWaitingIdsWithoutTheirCounts) {
  EXPECT_THAT(refusal([](Forged& f) { f.waiting_counts = {1}; }), HasSubstr("2 waiting ids, and 1 counts"));
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 32})
    EXPECT_THAT(refusal([&](Forged& f) { f.waiting_counts[1] = count; }),
                HasSubstr(fmt::format("id 8 waits with a count of {}", count)));
  EXPECT_THAT(refusal([](Forged& f) {
                f.waiting = {8, 8};
              }),
              HasSubstr("expected ascending waiting ids, found 8 after 8"));
}

TEST_F(ForgedSection, RefusesRowsThatAStepToComeHasSeen) {
  for (const std::int64_t step : {std::int64_t{4}, std::int64_t{-1}, std::int64_t{1} << 32})
    EXPECT_THAT(refusal([&](Forged& f) { f.history[2] = step; }),
                HasSubstr(fmt::format("the row of id 5 was seen in step {}", step)));
}

TEST_F(ForgedSection, RefusesADescriptionOfOtherTypes) {
  EXPECT_THAT(refusal([](Forged& f) { f.limits["step"] = "x"; }),
              HasSubstr("tables/t: its description was altered"));
  EXPECT_THAT(refusal([](Forged& f) { f.limits["counts"] = nullptr; }),
              HasSubstr("tables/t: its description"));
}

}  // namespace
}  // namespace hstu
