// The next day has items, and classes of a label, that the model does not know: every command goes on, and
// says so.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"
#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/base/json_text.h"
#include "hstu/base/npy.h"
#include "hstu/base/random.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kDayUsers = 20, kDayItems = 30;

class NewItems : public ::testing::Test {
 protected:
  CommandResult tell(const std::string& words) const {
    return run_command(
        fmt::format("cd {} && PATH={}:$PATH && {}", folder_.string(), HSTU_PROGRAM_DIR, words));
  }
  std::string succeed(const std::string& words) const {
    const CommandResult result = tell(words);
    EXPECT_EQ(result.exit_status, 0) << words << '\n' << result.text;
    return result.text;
  }
  // What a command prints on standard output.
  Json json(const std::string& words) const {
    return parse_json(succeed("(" + words + " 2>/dev/null)"), words);
  }

  // A day of 400 events without item `left_out`; on day 2 the last events are of the new item kDayItems.
  void write_day(int day, std::int64_t left_out = -1) const {
    RandomStream random{static_cast<std::uint64_t>(day)};
    std::string text = "user,item,time,rating\n";
    for (std::int64_t i = 0; i < 400; ++i) {
      auto item = static_cast<std::int64_t>(random.below(kDayItems));
      if (item == left_out) item = 0;
      if (day == 2 && i >= 390) item = kDayItems;
      const char* const rating = day == 2 && i >= 385 ? "great" : i % 3 == 0 ? "bad" : "good";
      text +=
          fmt::format("{},{},{},{}\n", i % kDayUsers, item, 1'700'000'000 + 86'400 * day + 60 * i, rating);
    }
    write_file(folder_ / fmt::format("day{}.csv", day), text);
  }
  void prepare() const {
    write_file(folder_ / "schema.toml",
               "name = \"days\"\nfiles = [\"*.csv\"]\nuser = \"user\"\nitem = \"item\"\ntime = \"time\"\n"
               "integers = [\"user\", \"item\"]\n[[context]]\nname = \"rating\"\n");
    write_day(2);
    for (const int day : {1, 2}) succeed(fmt::format("mkdir log{0} && mv day{0}.csv log{0}", day));
    succeed("hstu prepare csv --schema schema.toml --input log1 --output DS");
  }
  void expect_same_lengths(const Path& predictions, std::int64_t samples) const {
    for (const char* const name : {"user", "item", "position", "target", "rank"})
      EXPECT_EQ(NpyColumn<std::int64_t>(folder_ / predictions / (std::string(name) + ".npy")).size(), samples)
          << name;
  }

  const Path folder_ = temporary_folder();
  const std::string append_ = "hstu prepare csv --schema schema.toml --input log2 --append DS";
  const std::string next_ =
      "hstu prepare csv --schema schema.toml --input log2 --codes-from DS --output NEXT";
};

TEST_F(NewItems, ARetrievalModelIsEvaluatedExportedAndContinued) {
  write_day(1);
  prepare();
  succeed("hstu config --template retrieval --for DS >c.toml");
  succeed(
      "hstu train c.toml --output RUN --set model.embedding_dim=16 --set model.layers=1 --set "
      "training.epochs=1 "
      "--set 'evaluation.split=\"\"' --set evaluation.every_data_fraction=0 --set evaluation.patience=0 "
      "--set "
      "'checkpoint.best=\"\"'");
  succeed(next_);
  succeed(append_);
  const Json next = json("hstu eval RUN --data NEXT --predictions P"),
             unseen = json("hstu eval RUN --data DS --only-unseen");
  EXPECT_EQ(next.at("unanswered").at("new_item"), 10);
  EXPECT_EQ(next.at("item_baselines").at("markov").at("n"), next.at("n"));
  expect_same_lengths("P", next.at("n").get<std::int64_t>());
  const NpyColumn<std::int64_t> item(folder_ / "P/item.npy"), rank(folder_ / "P/rank.npy");
  std::int64_t hits = 0;
  for (std::int64_t i = 0; i < rank.size(); ++i) {
    EXPECT_EQ(rank[i] > kDayItems, item[i] == kDayItems) << i;
    hits += rank[i] <= 10 ? 1 : 0;
  }
  EXPECT_DOUBLE_EQ(next.at("hr@10").get<double>(),
                   static_cast<double>(hits) / static_cast<double>(rank.size()));
  EXPECT_GT(unseen.at("unanswered").at("new_item"), 0);
  write_file(folder_ / "users.csv", "user\n1\n19\n");
  const std::string top = succeed("hstu predict RUN --users users.csv --top 40 --output - --data NEXT");
  EXPECT_THAT(top, HasSubstr("\"item\": "));
  EXPECT_THAT(top, ::testing::Not(HasSubstr(",30,")));
  succeed("hstu export RUN --output EX && hstu export RUN --vectors V");
  succeed("hstu train --resume RUN");
  EXPECT_FALSE(json("hstu eval RUN --data NEXT").contains("unanswered")) << "the model has learnt them";
}

// Users come back to items: the run ranks in lists with them, and an evaluation has the figures of both
// lists.
TEST_F(NewItems, RepeatedItemsAreFoundInListsWithSeenItemsAlone) {
  write_day(1);
  prepare();
  succeed("hstu config --template retrieval --for DS >c.toml");
  EXPECT_THAT(read_file(folder_ / "c.toml"), HasSubstr("\nexclude_seen = \"none\"\n"));
  const std::string small =
      "--set model.embedding_dim=16 --set model.layers=1 --set training.epochs=1 --set "
      "evaluation.split=paper ";
  succeed("hstu train c.toml --output WITH " + small);
  succeed("hstu train c.toml --output WITHOUT --set model.exclude_seen=history " + small);
  const Json with = json("hstu eval WITH"), without = json("hstu eval WITHOUT --predictions P"),
             parts = with.at("parts");
  EXPECT_EQ(parts.at("repeated").at("n").get<int>() + parts.at("new").at("n").get<int>(), kDayUsers);
  EXPECT_EQ(with.at("mrr"), parts.at("with_seen").at("mrr"));
  EXPECT_EQ(without.at("mrr"), without.at("parts").at("without_seen").at("mrr"));
  EXPECT_EQ(without.at("parts").at("repeated").at("hr@200"), 0.0);
  // The lists of predict have the same figures.
  const NpyColumn<std::int64_t> user(folder_ / "P/user.npy"), target(folder_ / "P/target.npy"),
      time(folder_ / "P/time.npy");
  std::string users = "user,time\n";
  for (std::int64_t i = 0; i < user.size(); ++i) users += fmt::format("{},{}\n", user[i], time[i]);
  write_file(folder_ / "ends.csv", users);
  for (const std::string option : {"", " --exclude-seen"}) {
    succeed("rm -f top.csv && hstu predict WITHOUT --users ends.csv --top 5 --output top.csv" + option);
    std::string rows = read_file(folder_ / "top.csv");
    int hits = 0;
    for (std::int64_t i = 0; i < user.size(); ++i)
      hits += rows.find(fmt::format(",{},{},", user[i], target[i])) != std::string::npos ? 1 : 0;
    EXPECT_EQ(without.at("parts").at(option.empty() ? "with_seen" : "without_seen").at("hr@5"), hits / 20.0)
        << option;
  }
}

TEST_F(NewItems, TheTemplateShiftsTheIdsOfCodesOnlyWhereThatIsCertain) {
  std::string log;
  for (int user = 0; user < 10; ++user) {
    log += std::to_string(user);
    for (int n = 0; n < 9; ++n) log += fmt::format(" {}", 3 + (user * 7 + n) % 27);
    log += '\n';
  }
  write_file(folder_ / "log.txt", log);  // items 3 to 29
  succeed("hstu prepare sequences --input log.txt --output DS");
  const auto template_for = [&](int first, int items) {
    Json index;
    for (int i = first; i < first + items; ++i) index[std::to_string(i)] = {i / 10, i % 10};
    write_file(folder_ / "i.json", index.dump());
    return succeed("hstu config --template --kind semantic_ids --for DS --codes i.json");
  };
  const std::string as_they_are = template_for(0, 30), shifted = template_for(0, 27),
                    neither = template_for(0, 20);
  EXPECT_THAT(as_they_are, HasSubstr("which is right is not known"));
  EXPECT_THAT(as_they_are, ::testing::Not(HasSubstr("\nfirst_item")));
  EXPECT_THAT(shifted, HasSubstr("\nfirst_item = 3\n"));
  EXPECT_THAT(neither, HasSubstr("10 of 27 items have no codes, 7 with first_item = 3"));
  EXPECT_THAT(neither, ::testing::Not(HasSubstr("\nfirst_item")));
  EXPECT_THAT(template_for(3, 27), ::testing::Not(HasSubstr("first_item")));
}

TEST_F(NewItems, ATableThatIsTooSmallForTheItemsIsNamed) {
  write_day(1);
  prepare();
  succeed("hstu config --template retrieval --for DS >c.toml");
  const CommandResult result = tell("hstu train c.toml --output RUN --set features.item_rows=10");
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.text, HasSubstr("features.item_rows = 10: "));
}

class NewItemsOfCodes : public NewItems {
 protected:
  // Items 0 to kDayItems - 1 but item 5.
  void train() const {
    write_day(1, 5);
    prepare();
    const auto write_vectors = [&](const std::string& name, std::int64_t first, std::int64_t items) {
      std::vector<std::int64_t> ids;
      std::vector<float> values;
      for (std::int64_t i = first; i < first + items; ++i) {
        if (i == 5 && first == 0) continue;
        ids.push_back(i);
        values.insert(values.end(), {static_cast<float>(i % 7), static_cast<float>(i / 7)});
      }
      const std::int64_t shape[] = {std::ssize(ids), 2};
      std::string npy = npy_header("<f4", shape);
      npy.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
      write_file(folder_ / (name + ".npy"), npy);
      write_npy(folder_ / (name + "_ids.npy"), ids);
    };
    write_vectors("items", 0, kDayItems);
    write_vectors("new", 5, 1 + kDayItems - 5);
    succeed("hstu tokenize --vectors items.npy --ids items_ids.npy --levels 2 --codes 8 --output CODES");
    succeed("hstu config --template --kind semantic_ids --for DS --codes CODES >s.toml");
    succeed(
        "sed -i 's/^codes = .*/codes = \"CODES\"/; /^codes_id/d' s.toml && hstu train s.toml --output RUN "
        "--set "
        "model.dim=16 --set model.layers=1 --set model.heads=2 --set model.head_dim=8 --set "
        "training.epochs=1 "
        "--set 'evaluation.split=\"\"' --set evaluation.every_data_fraction=0 --set evaluation.patience=0 "
        "--set "
        "'checkpoint.best=\"\"'");
    succeed(next_);
    succeed(append_);
    write_file(folder_ / "users.csv", "user\n1\n19\n");
  }
};

TEST_F(NewItemsOfCodes, AreCountedAndThenGetCodes) {
  train();
  const Json next = json("hstu eval RUN --data NEXT --predictions P");
  EXPECT_GT(next.at("unanswered").at("new_item"), 10);
  EXPECT_EQ(next.at("item_baselines").at("markov").at("n"), next.at("n"));
  expect_same_lengths("P", next.at("n").get<std::int64_t>());
  EXPECT_THAT(succeed("hstu predict RUN --users users.csv --top 3 --output -"), HasSubstr("\"code\": "));
  EXPECT_THAT(succeed("hstu train --resume RUN"), HasSubstr("2 of 31 items"));
  const Json appended = json("hstu tokenize --vectors new.npy --ids new_ids.npy --append CODES");
  EXPECT_EQ(appended.at("items_appended"), 2);
  succeed("hstu train --resume RUN --set training.epochs=2");
  EXPECT_FALSE(json("hstu eval RUN --data NEXT --beam 64").contains("unanswered"));
  EXPECT_THAT(succeed("hstu predict RUN --users users.csv --top 31 --beam 64 --output -"), HasSubstr(",30,"));
}

TEST_F(NewItemsOfCodes, AnExportHasTheCodesThatItNeeds) {
  train();
  succeed("hstu export RUN --output EX && mkdir elsewhere && mv EX RUN elsewhere");
  const std::string predict = " --users ../users.csv --top 3 --data ../NEXT --output -";
  succeed("cd elsewhere && hstu predict RUN" + predict);
  succeed(
      "hstu tokenize --vectors items.npy --ids items_ids.npy --levels 2 --codes 8 --seed 2 --output OTHERS");
  succeed("mv CODES elsewhere/hidden && mv OTHERS CODES");
  succeed("cd elsewhere && hstu predict EX" + predict);
  EXPECT_THAT(tell("hstu predict elsewhere/RUN --users users.csv --top 3 --output -").text,
              HasSubstr("restore the codes"));
  succeed("cp CODES/* elsewhere/EX/codes");
  EXPECT_THAT(tell("cd elsewhere && hstu predict EX" + predict).text, HasSubstr("restore the codes"));
}

TEST_F(NewItemsOfCodes, ListsWithoutSeenItemsHaveAsManyItemsAsThereAre) {
  train();
  for (const int top : {10, 20, 40}) {
    const std::string rows = succeed(fmt::format(
        "hstu predict RUN --users users.csv --top {} --exclude-seen --output top{}.csv 2>/dev/null; "
        "tail -n +2 top{}.csv | cut -d, -f2 | sort | uniq -c",
        top, top, top));
    for (const int user : {1, 19}) {
      const std::string seen = succeed(fmt::format(
          "cat log?/*.csv | grep '^{},' | cut -d, -f2 | sort -u | grep -vx '5\\|30' | wc -l", user));
      const std::int64_t left = kDayItems - 1 - std::stoi(seen);
      EXPECT_THAT(rows, HasSubstr(fmt::format(" {} {}\n", std::min<std::int64_t>(top, left), user))) << top;
    }
  }
}

// The class "great" comes on day 2.
TEST_F(NewItems, ANewClassOfALabelIsCountedAndNotLearnt) {
  write_day(1);
  prepare();
  succeed("hstu config --template --kind ranking_gr --for DS >c.toml");
  succeed(
      "sed -i '/^labels/d' c.toml && hstu train c.toml --output RUN --set 'model.head=\"multi_class\"' --set "
      "'model.labels=[\"good\",\"bad\"]' --set 'model.label_column=\"rating\"' --set "
      "'model.positive_classes=[\"good\"]' --set data.negatives.per_positive=0 --set evaluation.negatives=0 "
      "--set training.max_steps=2");
  succeed(next_);
  succeed(append_);
  const Json next = json("hstu eval RUN --data NEXT");
  EXPECT_GT(next.at("unanswered").at("new_label"), 0);
  write_file(folder_ / "requests.csv", "user,time,item,rating\n1,1700200000,3,good\n");
  succeed("hstu predict RUN --requests requests.csv --output -");
  succeed("hstu export RUN --output EX && hstu predict EX --data NEXT --requests requests.csv --output -");
  EXPECT_THAT(succeed("hstu train --resume RUN --set training.max_steps=4"), HasSubstr("great"));
}

}  // namespace
}  // namespace hstu
