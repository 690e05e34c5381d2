#include "hstu/base/json_lines.h"

#include <cmath>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::HasSubstr;

Path fresh(const std::string& name) {
  return temporary_folder() / name;
}

void append(const Path& path, const std::string& text) {
  std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

TEST(Json, FloatsPrintTheirOwnShortestDigits) {
  Json json{{"float", 0.1f}, {"double", 0.1}, {"third", 1.0 / 3}, {"count", std::int64_t{1} << 53}};
  json["list"] = std::vector<float>{0.1f, 2.5f};
  EXPECT_EQ(
      json.dump(),
      R"({"float":0.1,"double":0.1,"third":0.3333333333333333,"count":9007199254740992,"list":[0.1,2.5]})");
  EXPECT_EQ(Json::parse(json.dump())["float"].get<float>(), 0.1f);
  EXPECT_EQ(Json::parse(json.dump())["third"].get<double>(), 1.0 / 3);
}

TEST(Json, NotANumberIsAWordAndAbsentIsNull) {
  const Json json{{"a", NAN},
                  {"b", std::numeric_limits<double>::infinity()},
                  {"c", -std::numeric_limits<float>::infinity()},
                  {"d", std::optional<double>()},
                  {"e", std::optional<double>(0.5)}};
  EXPECT_EQ(json.dump(), R"({"a":"nan","b":"inf","c":"-inf","d":null,"e":0.5})");
  const Json back = Json::parse(json.dump());
  EXPECT_TRUE(std::isnan(back["a"].get<double>()));
  EXPECT_EQ(back["c"].get<float>(), -std::numeric_limits<float>::infinity());
  EXPECT_FALSE(back["d"].get<std::optional<double>>().has_value());
  EXPECT_EQ(back["e"].get<std::optional<double>>(), 0.5);
}

TEST(JsonLines, ALineIsInTheFileWhenWriteReturns) {
  const Path path = fresh("whole.jsonl");
  JsonLinesWriter writer(path);
  writer.write({{"step", 1}, {"loss", 0.5}});
  writer.write({{"step", 2}, {"text", "two\nlines"}});
  EXPECT_EQ(read_file(path), "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"text\":\"two\\nlines\"}\n");
}

TEST(JsonLines, AnOddlyNamedFileDoesNotStopTheRun) {
  const Path path = fresh("utf8.jsonl");
  JsonLinesWriter(path).write({{"path", "caf\xe9"}});
  EXPECT_EQ(read_json_lines(path).size(), 1u);
}

TEST(JsonLines, GoesOnBehindTheLastLine) {
  const Path path = fresh("append.jsonl");
  { JsonLinesWriter(path).write({{"step", 1}}); }
  { JsonLinesWriter(path).write({{"step", 2}}); }
  EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(JsonLines, AnIncompleteLastLineIsRemovedBeforeAppending) {
  const Path path = fresh("torn.jsonl");
  append(path, "{\"step\":1}\n{\"step\":2,\"lo");
  EXPECT_EQ(read_json_lines(path).size(), 1u);
  JsonLinesWriter(path).write({{"step", 2}});
  EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(JsonLines, AFileOfOneIncompleteLineBecomesEmpty) {
  const Path path = fresh("only_torn.jsonl");
  append(path, "{\"ev");
  { const JsonLinesWriter opened(path); }
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

TEST(JsonLines, WhatFollowsTheLastLineThatHoldsIsCut) {
  const Path path = fresh("resume.jsonl");
  append(path, "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"b\":0}\n{\"step\":3}\n{\"ev");
  const auto is = [](int step) { return [step](const Json& line) { return line.at("step") == step; }; };
  EXPECT_EQ(cut_lines_behind(path, is(4)), std::nullopt);
  EXPECT_EQ(cut_lines_behind(path, is(2)), 1);
  EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"b\":0}\n");
}

TEST(JsonLines, AnAlteredLineIsNamed) {
  const Path path = fresh("altered.jsonl");
  append(path, "{\"step\":1}\n[2]\n{\"step\":3}\n");
  try {
    read_json_lines(path);
    FAIL() << "an altered line was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("altered.jsonl line 2: expected a JSON object"));
  }
  const Path twice = fresh("twice.jsonl");
  append(twice, "{\"step\":1,\"step\":2}\n");
  try {
    read_json_lines(twice);
    FAIL() << "a key that occurs twice was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the key \"step\" occurs twice"));
  }
}

TEST(JsonLines, AFullDiskIsNamed) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "/dev/full does not exist";
  const Path path = fresh("full.jsonl");
  std::filesystem::create_symlink("/dev/full", path);
  JsonLinesWriter writer(path);
  try {
    writer.write({{"step", 1}});
    FAIL() << "a full disk went unnoticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("full.jsonl: No space left on device"));
  }
}

}  // namespace
}  // namespace hstu
