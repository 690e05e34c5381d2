// The life of a model: new events every day, the same model, with kills in between.
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"
#include "hstu/base/files.h"
#include "hstu/base/json_lines.h"
#include "hstu/base/random.h"
#include "temporary_folder.h"
#include "training/run_files.h"

namespace hstu {
namespace {

constexpr std::int64_t kDays = 5, kUsers = 40, kItems = 30, kEventsOfDay = 200;

const std::string kTrain =
    "train c.toml --threads 1 --set data.history_length=8 --set model.embedding_dim=8 --set model.dim=8 "
    "--set model.layers=1 --set model.heads=1 --set model.preprocessor_hidden=8 --set model.head_hidden=8 "
    "--set training.batch_size=32 --set training.epochs=1 --set evaluation.patience=0 ";

class Daily : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(
        folder_ / "schema.toml",
        "name = \"shop\"\nfiles = [\"*.csv\"]\nuser = \"user\"\nitem = \"item\"\ntime = \"at\"\n"
        "time_unit = \"s\"\nintegers = [\"user\", \"item\"]\nlabel = \"good\"\npools = [\"good\", \"bad\"]\n"
        "[[action]]\nname = \"good\"\nbit = 1\nwhen = [\"kind = g\"]\n"
        "[[action]]\nname = \"bad\"\nbit = 2\nwhen = [\"kind = b\"]\n");
    for (std::int64_t day = 0; day < kDays; ++day) write_log(day);
  }

  // Users like items of their parity.
  void write_log(std::int64_t day) {
    RandomStream random{.key = static_cast<std::uint64_t>(day), .index = 0};
    std::string text = "user,item,at,kind\n";
    for (std::int64_t i = 0; i < kEventsOfDay; ++i) {
      const auto user = static_cast<std::int64_t>(random.below(kUsers)),
                 item = static_cast<std::int64_t>(random.below(kItems));
      const bool likes = (user + item) % 2 == 0 ? random.below(10) > 0 : random.below(10) == 0;
      text +=
          fmt::format("{},{},{},{}\n", user, item, 1'700'000'000 + 86'400 * day + 400 * i, likes ? 'g' : 'b');
    }
    std::filesystem::create_directories(folder_ / "logs" / std::to_string(day));
    write_file(folder_ / "logs" / std::to_string(day) / "events.csv", text);
  }

  CommandResult hstu(const std::string& words) const {
    return run_command(fmt::format("cd {} && {}/hstu {}", folder_.string(), HSTU_PROGRAM_DIR, words));
  }
  void expect_done(const std::string& words) const {
    const CommandResult result = hstu(words);
    ASSERT_EQ(result.exit_status, 0) << words << '\n' << result.text;
  }
  std::int64_t step_of(const std::string& run) const {
    return Json::parse(read_file(folder_ / run / "summary.json")).at("step").get<std::int64_t>();
  }
  std::map<std::string, std::string> files_of(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / name))
      if (entry.is_regular_file())
        files[entry.path().lexically_relative(folder_ / name)] = read_file(entry.path());
    return files;
  }

  Path folder_ = temporary_folder();
};

TEST_F(Daily, KillsChangeNothingAndTheReaderOfDeltasHasTheTrainersRows) {
  expect_done("prepare csv --schema schema.toml --input logs/0 --output ds --threads 1 --min-history 1");
  expect_done("config --template --for ds > c.toml");
  for (const std::string run : {"calm", "torn"}) {
    expect_done(kTrain + "--set checkpoint.keep=0 --set checkpoint.every_steps=3 --output " + run);
  }
  expect_done("export tables calm --output joined-0");
  std::int64_t since = step_of("calm");
  const std::vector<std::string> faults{"step.middle:2", "evaluation.batch:1", "save.rename:1",
                                        "save.renamed:2"};
  for (std::int64_t day = 1; day < kDays; ++day) {
    expect_done(fmt::format("prepare csv --schema schema.toml --input logs/{} --append ds --threads 1", day));
    expect_done("train --resume calm --threads 1");
    const CommandResult killed = hstu(
        fmt::format("train --resume torn --threads 1 --fault {}", faults[static_cast<std::size_t>(day - 1)]));
    EXPECT_NE(killed.exit_status, 0) << killed.text;
    expect_done("train --resume torn --threads 1");
    EXPECT_EQ(testing::newest_checkpoint(folder_ / "torn"), testing::newest_checkpoint(folder_ / "calm"))
        << day;
    EXPECT_EQ(testing::course(folder_ / "torn"), testing::course(folder_ / "calm")) << day;

    expect_done(fmt::format("export tables calm --since {} --output delta-{}", since, day));
    expect_done(fmt::format("import joined-{} delta-{} --output joined-{}", day - 1, day, day));
    since = step_of("calm");
    write_file(folder_ / "requests.csv",
               fmt::format("user,time,item\n1,{},2\n", 1'700'000'000 + 86'400 * day));
    expect_done(fmt::format("predict calm --requests requests.csv --output scores-{}.csv", day));
  }
  expect_done("export tables calm --output whole");
  EXPECT_EQ(files_of(fmt::format("joined-{}", kDays - 1)), files_of("whole"));
  EXPECT_EQ(hstu("prepare verify ds").exit_status, 0);
}

TEST_F(Daily, AFollowedFolderIsReadOnceAndTrainedWhateverIsKilled) {
  expect_done("prepare csv --schema schema.toml --input logs/0 --output ds --threads 1 --min-history 1");
  std::filesystem::copy(folder_ / "ds", folder_ / "ds2", std::filesystem::copy_options::recursive);
  expect_done("config --template --for ds > c.toml");
  expect_done(kTrain + "--set data.path=ds --output calm");
  expect_done(kTrain + "--set data.path=ds2 --output followed");
  const Path in = folder_ / "in";
  std::filesystem::create_directories(in);
  const auto give = [&](int day) {
    std::filesystem::copy(folder_ / fmt::format("logs/{}/events.csv", day), in / fmt::format("{}.csv", day));
  };
  give(0);
  write_file(in / ".3.csv", "not complete");
  const std::string follow = "follow in --schema schema.toml --run followed --once --settle 0 --threads 1";
  expect_done(follow + " --known");
  expect_done(follow + " --known");  // as a service manager repeats it
  for (const int day : {1, 2}) {
    expect_done(fmt::format("prepare csv --schema schema.toml --input logs/{} --append ds --threads 1", day));
    expect_done("train --resume calm --threads 1");
  }
  give(1);
  // As if it had been killed behind the append of the first file.
  const std::string id = Json::parse(read_file(folder_ / "ds2/manifest.json")).at("id");
  expect_done("prepare csv --schema schema.toml --input logs/1 --append ds2 --threads 1");
  write_file(folder_ / "followed/follow.json",
             Json{{"read", {{"0.csv", std::filesystem::file_size(in / "0.csv")}}},
                  {"reading", {{"1.csv", std::filesystem::file_size(in / "1.csv")}}},
                  {"before", id}}
                 .dump());
  expect_done(follow);
  give(2);
  expect_done(follow);
  auto followed = testing::newest_checkpoint(folder_ / "followed"),
       calm = testing::newest_checkpoint(folder_ / "calm");
  for (auto* const files : {&followed, &calm}) files->erase("manifest.json");  // of another dataset's path
  EXPECT_TRUE(followed == calm);
  const CommandResult again = hstu(follow);
  EXPECT_THAT(again.text, ::testing::Not(::testing::HasSubstr("added")));
  write_file(in / "2.csv", read_file(in / "2.csv") + "1,2,1800000000,g\n");
  const CommandResult grown = hstu(follow);
  EXPECT_EQ(grown.exit_status, 1);
  EXPECT_THAT(grown.text, ::testing::HasSubstr("2.csv: had"));
}

}  // namespace
}  // namespace hstu
