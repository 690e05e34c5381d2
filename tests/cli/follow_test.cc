// hstu follow on the days when files are bad, foreign, copied, changed or of another clock.
#include <chrono>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"
#include "hstu/base/files.h"
#include "hstu/base/json.h"
#include "hstu/dataset/manifest.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kRows = 60;  // of a file

class Follow : public ::testing::Test {
 protected:
  void SetUp() override {
    write_schema("*.csv");
    std::filesystem::create_directory(in_);
    write_file(in_ / "day0.csv", day(0));
    expect_done("prepare csv --schema schema.toml --input in --output ds --min-history 1");
    expect_done("config --template --for ds > c.toml");
    expect_done(
        "train c.toml --threads 1 --set data.history_length=4 --set model.embedding_dim=8 --set model.dim=8 "
        "--set model.layers=1 --set model.heads=1 --set model.preprocessor_hidden=8 --set "
        "model.head_hidden=8 --set training.epochs=1 --set evaluation.patience=0 --output run");
    EXPECT_EQ(follow(0), kRows);
  }

  void write_schema(const std::string& files, const std::string& more = "") const {
    write_file(folder_ / "schema.toml",
               fmt::format("name = \"shop\"\nfiles = [\"{}\"]\nuser = \"user\"\nitem = \"item\"\n"
                           "time = \"at\"\nlabel = \"good\"\npools = [\"good\"]\n"
                           "[[action]]\nname = \"good\"\nbit = 1\nwhen = [\"kind = g\"]\n"
                           "[[action]]\nname = \"bad\"\nbit = 2\nwhen = [\"kind = b\"]\n{}",
                           files, more));
  }
  static std::string rows(std::int64_t day) {
    std::string text;
    for (std::int64_t i = 0; i < kRows; ++i)
      text += fmt::format("u{},i{},{},{}\n", i % 7, i % 11, 1'700'000'000 + 86'400 * day + 100 * i,
                          i % 3 == 0 ? 'g' : 'b');
    return text;
  }
  static std::string day(std::int64_t number) { return "user,item,at,kind\n" + rows(number); }

  CommandResult hstu(const std::string& words) const {
    return run_command(fmt::format("cd {} && {}/hstu {}", folder_.string(), HSTU_PROGRAM_DIR, words));
  }
  void expect_done(const std::string& words) const {
    const CommandResult result = hstu(words);
    ASSERT_EQ(result.exit_status, 0) << words << '\n' << result.text;
  }
  // Events of the dataset afterwards.
  std::int64_t follow(int status, const std::string& words = "--settle 0") {
    const CommandResult result =
        hstu("follow in --schema schema.toml --run run --once --known --threads 1 " + words);
    EXPECT_EQ(result.exit_status, status) << result.text;
    said_ = result.text;
    if (status == 0) {
      EXPECT_THAT(said_, HasSubstr(read_manifest(folder_ / "ds").id)) << "not trained";
    }
    return read_manifest(folder_ / "ds").counts.events;
  }
  Json state() const { return Json::parse(read_file(folder_ / "run/follow.json")); }

  Path folder_ = temporary_folder(), in_ = folder_ / "in";
  std::string said_ = {};
};

TEST_F(Follow, AFileThatWasCorrectedOrRemovedBlocksNothing) {
  write_file(in_ / "day1.csv", day(1) + "u1,i1,notatime,g\n");
  EXPECT_EQ(follow(1), kRows);
  EXPECT_THAT(said_, HasSubstr("in/day1.csv: column \"at\": line 62"));
  EXPECT_EQ(follow(1), kRows);
  write_file(in_ / "day1.csv", day(1));
  EXPECT_EQ(follow(0), 2 * kRows);
  EXPECT_EQ(follow(0), 2 * kRows);
  EXPECT_THAT(said_, Not(HasSubstr("added")));
  write_file(in_ / "day2.csv", "half of PAR1");
  write_file(in_ / "day3.csv", day(3));
  EXPECT_EQ(follow(1), 2 * kRows);
  std::filesystem::remove(in_ / "day2.csv");
  EXPECT_EQ(follow(0), 3 * kRows);
}

TEST_F(Follow, AFileWithoutEventsIsReadAgainWhenItHasSome) {
  write_file(in_ / "day1.csv", day(1).substr(0, 18));
  write_file(in_ / "day2.csv", "");
  EXPECT_EQ(follow(0), kRows);
  EXPECT_THAT(said_, HasSubstr("day2.csv"));
  EXPECT_TRUE(state().at("read").contains("day1.csv"));
  EXPECT_FALSE(state().at("read").contains("day2.csv"));
  EXPECT_EQ(follow(0), kRows);
  write_file(in_ / "day1.csv", day(1));
  write_file(in_ / "day2.csv", day(2));
  EXPECT_EQ(follow(0), 3 * kRows);
  for (const char* const name : {"day3.csv", "day4.csv"}) write_file(in_ / name, day(3).substr(0, 18));
  write_file(in_ / "day5.csv", day(5));
  EXPECT_EQ(follow(0), 4 * kRows);
  EXPECT_THAT(said_, Not(HasSubstr("has the bytes of")));
  write_file(in_ / "day3.csv", day(3));
  EXPECT_EQ(follow(0), 5 * kRows);
}

TEST_F(Follow, FilesThatTheSchemaDoesNotNameAreLeftAlone) {
  std::filesystem::create_directories(in_ / "old/_temporary");
  for (const char* const name : {"README.txt", "old/day9.csv", "old/_temporary/x", "_SUCCESS", ".day1.csv",
                                 "day1.csv.part", "\xff.csv", "two\nlines.csv"})
    write_file(in_ / name, day(9));
  std::filesystem::create_symlink("nothing", in_ / "link.csv");
  EXPECT_EQ(follow(0), kRows);
  for (const char* const what : {"in/README.txt: is not read", "in/old/day9.csv: is not read",
                                 "in/\\xff.csv: its name is not one line",
                                 "lines.csv: its name is not one line", "in/link.csv: is a link to no file"})
    EXPECT_THAT(said_, HasSubstr(what));
  EXPECT_EQ(state().at("ignored"), Json({"README.txt", "old/day9.csv"}));
  EXPECT_EQ(state().at("read").size(), 1);
  write_file(in_ / "day1.csv", day(1));
  EXPECT_EQ(follow(0), 2 * kRows);
  EXPECT_THAT(said_, Not(HasSubstr("README.txt"))) << "said once";
  write_schema("*.csv*");
  write_file(in_ / "day2.csv", day(2));
  write_file(in_ / "day2.csv.md5", "0 day2.csv\n");
  EXPECT_EQ(follow(0), 3 * kRows);
}

TEST_F(Follow, FoldersBelowAreReadWhereThePatternsReachThem) {
  write_schema("day=*/*.csv");
  std::filesystem::create_directories(in_ / "day=1");
  write_file(in_ / "day=1/part [0].csv", day(1));
  EXPECT_EQ(follow(0), 2 * kRows);
  EXPECT_TRUE(state().at("read").contains("day=1/part [0].csv"));
}

TEST_F(Follow, NoFileIsReadUnderTwoNames) {
  const auto copy = [&](const char* from, const char* to) { std::filesystem::copy(in_ / from, in_ / to); };
  write_file(in_ / "day1.csv", day(1));
  std::filesystem::create_symlink("day1.csv", in_ / "a-latest.csv");
  copy("day0.csv", "day0 (copy).csv");
  EXPECT_EQ(follow(0), 2 * kRows);
  EXPECT_THAT(said_, HasSubstr("in/a-latest.csv: has the bytes of in/day1.csv"));
  EXPECT_THAT(said_, HasSubstr("in/day0 (copy).csv: has the bytes of in/day0.csv"));
  write_file(in_ / "day2.csv", day(2));
  std::filesystem::remove(in_ / "a-latest.csv");
  std::filesystem::create_symlink("day2.csv", in_ / "a-latest.csv");
  std::filesystem::rename(in_ / "day1.csv", in_ / "day1.done.csv");
  EXPECT_EQ(follow(0), 3 * kRows);
  // The same events as other bytes: hstu prepare refuses them.
  write_file(in_ / "day2.again.csv", day(2) + "\n");
  EXPECT_EQ(follow(0), 3 * kRows);
  EXPECT_THAT(said_, HasSubstr("day2.again.csv: the dataset has all of their events"));
}

TEST_F(Follow, AFileOfTheFutureIsCompleteWhenItDoesNotChange) {
  write_file(in_ / "day1.csv", day(1));
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(in_ / "day1.csv", now + std::chrono::hours(1));
  EXPECT_EQ(follow(0, "--settle 0.05"), 2 * kRows);
  write_file(in_ / "day2.csv", day(2));
  EXPECT_EQ(follow(0, "--settle 3000"), 2 * kRows);
  EXPECT_THAT(
      said_,
      HasSubstr("not read yet, because they are empty or were written less than 3000 s ago: day2.csv"));
  std::filesystem::last_write_time(in_ / "day2.csv", now - std::chrono::hours(1));
  EXPECT_EQ(follow(0, "--settle 3000"), 3 * kRows);
}

TEST_F(Follow, AFileThatChangedIsNamedWhenTheOthersWereRead) {
  std::filesystem::last_write_time(in_ / "day0.csv", std::filesystem::file_time_type::clock::now());
  EXPECT_EQ(follow(0), kRows) << "the same bytes";
  write_file(in_ / "day0.csv", day(0) + rows(1));
  write_file(in_ / "day2.csv", day(2));
  EXPECT_EQ(follow(1), 2 * kRows);
  EXPECT_THAT(said_, HasSubstr("in/day0.csv: had"));
  EXPECT_THAT(said_, HasSubstr("\"trained\":\"" + read_manifest(folder_ / "ds").id));
  std::filesystem::rename(in_ / "day0.csv", in_ / "_day0");
  write_file(in_ / "day1.csv", day(1));
  EXPECT_EQ(follow(0), 3 * kRows);
}

TEST_F(Follow, WhatAKilledCommandHadBegunIsAdded) {
  const auto begin = [&](const std::string& name, std::int64_t number) {
    write_file(in_ / name, day(number));
    Json json = state();
    json["before"] = read_manifest(folder_ / "ds").id;
    json["reading"] = {{name, std::filesystem::file_size(in_ / name)}};
    write_file(folder_ / "run/follow.json", json.dump());
  };
  begin("day1.csv", 1);  // killed before the append, and another one came
  std::filesystem::create_directory(folder_ / "other");
  write_file(folder_ / "other/day5.csv", day(5));
  expect_done("prepare csv --schema schema.toml --input other --append ds");
  EXPECT_EQ(follow(0), 3 * kRows);
  begin("day2.csv", 2);  // killed behind the append
  write_file(folder_ / "other/day5.csv", day(2));
  expect_done("prepare csv --schema schema.toml --input other --append ds");
  EXPECT_EQ(follow(0), 4 * kRows);
  EXPECT_TRUE(state().at("read").contains("day2.csv"));
  begin("day3.csv", 3);  // killed before the append, and the file was corrected
  write_file(in_ / "day3.csv", day(3) + rows(4));
  EXPECT_EQ(follow(0), 6 * kRows);
}

}  // namespace
}  // namespace hstu
