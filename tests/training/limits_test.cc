// Runs whose tables forget rows.
#include <set>

#include <gmock/gmock.h>

#include "hstu/base/float16.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/embedding/saved_table.h"
#include "support/kind_options.h"
#include "training/ranked_run.h"

namespace hstu::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LimitedRun : public RankedRun {
 protected:
  LimitedRun() {
    options_.metrics.every_steps = 3;
    options_.checkpoint = {.every_steps = 3, .every_seconds = 0, .keep = 0};
    options_.sparse.kind = RowOptimizerKind::adagrad;  // rowwise_adagrad needs whole rows
    options_.tables.by_name["item"] = {.capacity = "6", .evict = Evict::lfu, .admit_after = 3};
    options_.tables.by_name["user"] = {.capacity = "9", .evict = Evict::lru, .ttl = "2000s"};
  }

  // Everything but values that ranks round differently: ids, scores, steps and waiting ids of a table.
  std::string lives(const std::string& run, const std::string& table) const {
    const Checkpoint checkpoint(find_checkpoint(folder_ / run / "checkpoints", -1));
    const SafetensorsFile file = checkpoint.section("tables/" + table).file();
    std::string text;
    for (const char* name : {"ids", "waiting_ids", "waiting_counts"})
      text += fmt::format("{}: {}\n", name, fmt::join(file.column<std::int64_t>(name), " "));
    const auto n = static_cast<std::int64_t>(file.column<std::int64_t>("ids").size());
    return text + fmt::format("history: {}", fmt::join(file.values<std::int64_t>("history", {n, 2}), " "));
  }

  // Of the run "alone".
  void expect_same_on_ranks_and_in_parts() {
    const std::vector<Json> expected = log("alone", "train");
    const auto expect_same = [&](const std::string& name) {
      EXPECT_EQ(lives(name, "item"), lives("alone", "item")) << name;
      EXPECT_EQ(lives(name, "user"), lives("alone", "user")) << name;
      const std::vector<Json> lines = log(name, "train");
      ASSERT_EQ(lines.size(), expected.size());
      for (std::size_t i = 0; i < lines.size(); ++i)
        EXPECT_EQ(lines[i].at("tables"), expected[i].at("tables"));
    };
    for (const int ranks : {2, 3}) {
      for (const auto& [word, form] : kTableRanks) {
        options_.tables.ranks = form;
        const std::string name = std::string(word) + std::to_string(ranks);
        run_on(ranks, name);
        expect_same(name);
      }
      options_.tables.by_name["item"].ranks = "column";
      options_.tables.by_name["user"].ranks = "table";
      run_on(ranks, "mix" + std::to_string(ranks));
      expect_same("mix" + std::to_string(ranks));
      options_.tables.by_name["item"].ranks = options_.tables.by_name["user"].ranks = "";
    }
    options_.tables.ranks = TableRanks::split;
    options_.training.micro_batch_tokens = 40;
    run("parts");
    expect_same("parts");
    options_.training.micro_batch_tokens = 0;
  }
};

TEST_F(LimitedRun, HasItsCountsInTheLogAndNeverMoreRowsThanItsCapacity) {
  run("run");
  const std::vector<Json> lines = log("run", "train");
  ASSERT_FALSE(lines.empty());
  for (const Json& line : lines) {
    EXPECT_LE(line.at("tables").at("item").at("rows"), 6);
    EXPECT_LE(line.at("tables").at("user").at("rows"), 9);
    EXPECT_EQ(line.at("tables").size(), 2u) << "tables without limits have no such counts";
  }
  const Json item = lines.back().at("tables").at("item"), user = lines.back().at("tables").at("user");
  EXPECT_EQ(item.at("rows"),
            item.at("inserted").get<std::int64_t>() - item.at("evicted").get<std::int64_t>());
  EXPECT_GT(item.at("admitted"), 0);
  EXPECT_GT(item.at("evicted"), 0);
  EXPECT_GT(user.at("evicted"), 0);
  EXPECT_EQ(user.at("load"), user.at("rows").get<double>() / 9);
}

// The trap: ids that are made distinct on their way to the table lose their numbers.
TEST_F(LimitedRun, ScoresCountOccurrencesNotDistinctIds) {
  options_.tables.by_name["item"] = {.capacity = "1000", .evict = Evict::lfu};
  run("run");
  std::map<std::int64_t, std::int64_t> expected;
  Experiment experiment(options_);
  const auto loader = training_loader(experiment, {}, one_rank());
  std::int64_t distinct = 0, tokens = 0;
  for (std::int64_t step = 0; step < options_.training.max_steps;) {
    const LoadedBatch& part = *loader->next();
    const auto ids = part.batch.values<std::int64_t>(ids_column("item"));
    distinct += std::ssize(ids);
    for (const std::int32_t token : part.batch.values<std::int32_t>(index_column("item"))) {
      if (token < 0) continue;  // of a contextual feature
      ++expected[ids[static_cast<std::size_t>(token)]];
      ++tokens;
    }
    step += part.last_part ? 1 : 0;
  }
  EXPECT_GT(tokens, 2 * distinct);
  const Checkpoint checkpoint(find_checkpoint(folder_ / "run" / "checkpoints", -1));
  const SavedTable items(checkpoint.section("tables/item"));
  std::map<std::int64_t, std::int64_t> found;
  for (std::size_t i = 0; i < items.size(); ++i) found[items.ids()[i]] = items.history(i)[1];
  EXPECT_EQ(found, expected);
}

TEST_F(LimitedRun, ContinuesToTheBitAfterInterruptions) {
  run("whole");
  int n = 0;
  for (const int step : {1, 4, 5, 9}) {
    const std::string name = "parts" + std::to_string(n++);
    interrupt_and_resume(name, "step.end", step);
    expect_same_run("whole", name);
  }
}

TEST_F(LimitedRun, KeepsTheSameRowsOnAnyNumberOfRanksAndInParts) {
  run("alone");
  expect_same_on_ranks_and_in_parts();
}

// The score of a user's row is the largest "worth" of the anchors that trained it.
TEST_F(LimitedRun, KeepsTheRowsOfTheLargestValuesOfAColumn) {
  options_.tables.by_name["item"] = {.capacity = "6", .evict = Evict::custom, .score = "worth"};
  options_.tables.by_name["user"] = {.capacity = "9", .evict = Evict::custom, .score = "worth"};
  run("alone");
  const Dataset dataset(folder_ / "dataset");
  const Checkpoint checkpoint(find_checkpoint(folder_ / "alone" / "checkpoints", -1));
  const SavedTable users(checkpoint.section("tables/user"));
  ASSERT_EQ(users.size(), 9u);
  int older = 0;
  for (std::size_t i = 0; i < users.size(); ++i) {
    std::int64_t largest = -100;
    dataset.events_of(users.ids()[i]).each([&](std::int64_t p) {
      largest = std::max(largest, dataset.context("worth")[p]);
    });
    EXPECT_LE(users.history(i)[1], largest);
    if (users.history(i)[0] == options_.training.max_steps) continue;  // they leave last
    EXPECT_GT(users.history(i)[1], 0) << "users of small values left";
    ++older;
  }
  EXPECT_GT(older, 0);
  expect_same_on_ranks_and_in_parts();
  interrupt_and_resume("resumed", "step.end", 4);
  expect_same_run("alone", "resumed");
}

TEST_F(LimitedRun, ContinuesToTheBitWithRowsInBf16) {
  options_.tables.by_name["item"].dtype = options_.tables.by_name["user"].dtype = DType::bf16;
  for (const bool incremental : {false, true}) {
    options_.checkpoint.incremental = incremental;
    const std::string whole = incremental ? "changes" : "whole", parts = whole + "-parts";
    run(whole);
    interrupt_and_resume(parts, "step.end", 4);
    expect_same_run(whole, parts);
  }
  const Checkpoint checkpoint(find_checkpoint(folder_ / "whole" / "checkpoints", -1));
  const SafetensorsFile file = checkpoint.section("tables/item").file();
  EXPECT_EQ(file.column<std::int64_t>("ids").size(), 6u);
  EXPECT_NO_THROW(file.values<BFloat16>("rows", {6, dlrmv4_of(options_).embedding_dim}));
  run_on(2, "ranks");
}

TEST_F(LimitedRun, ContinuesOnAnotherNumberOfRanks) {
  run("alone");
  const std::int64_t steps = options_.training.max_steps;
  options_.training.max_steps = 6;
  options_.tables.by_name["item"].ranks = "column";
  run_on(3, "changed");
  options_.tables.by_name["item"].ranks = "split";
  options_.tables.by_name["user"].ranks = "copy";
  options_.training.max_steps = steps;
  run_on(2, "changed", true);
  EXPECT_EQ(lives("changed", "item"), lives("alone", "item"));
  EXPECT_EQ(lives("changed", "user"), lives("alone", "user"));
  EXPECT_EQ(log("changed", "train").back().at("tables"), log("alone", "train").back().at("tables"));
}

TEST_F(LimitedRun, TakesAnotherCapacityWhenItIsAllowed) {
  options_.training.max_steps = 6;
  run("run");
  options_.training.max_steps = 9;
  options_.tables.by_name["item"].capacity = "2";
  resume("run", -1, {"training.max_steps", "tables.item.capacity"});
  EXPECT_EQ(log("run", "train").back().at("tables").at("item").at("rows"), 2);
}

TEST_F(LimitedRun, RefusesTablesThatDoNotExistAndLimitsThatContradictEachOther) {
  const auto message = [&](const std::string& name, const TableSection& section) {
    RunOptions options = options_;
    options.tables.by_name[name] = section;
    return message_of<UsageError>([&] { const Experiment experiment(options); });
  };
  EXPECT_THAT(message("itme", {.capacity = "5"}), AllOf(HasSubstr("[tables.itme]"), HasSubstr("\"item\"?")));
  EXPECT_THAT(message("item", {.evict = Evict::lru}),
              AllOf(HasSubstr("tables.item.evict = \"lru\""), HasSubstr("set tables.item.capacity")));
  EXPECT_THAT(message("item", {.capacity = "5", .memory = "1GiB"}), HasSubstr("set one of them"));
  EXPECT_THAT(message("item", {.memory = "3"}), HasSubstr("less than one row"));
  EXPECT_THAT(message("item", {.capacity = "5", .evict = Evict::custom}),
              HasSubstr("tables.item.evict = \"custom\" needs tables.item.score"));
  EXPECT_THAT(message("item", {.capacity = "5", .evict = Evict::lru, .score = "worth"}),
              HasSubstr("tables.item.score = \"worth\" is for evict = \"custom\""));
  EXPECT_THAT(message("item", {.capacity = "5", .evict = Evict::custom, .score = "wroth"}),
              HasSubstr("no context column \"wroth\"; did you mean \"worth\"?"));
}

}  // namespace
}  // namespace hstu::testing
