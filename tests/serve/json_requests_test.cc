#include "hstu/serve/json_requests.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/dataset/names_writer.h"
#include "hstu/dataset/writer.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A dataset of no events with a context column of texts and one of numbers, whose last event is at `last`.
Dataset with_places(const Path& folder, std::int64_t last = 1'700'000'000) {
  Manifest description;
  description.name = "small";
  description.actions = {{"like", 1}};
  description.label = "like";
  description.pools = {"like"};
  description.context = {"place", "worth"};
  std::filesystem::create_directories(folder);
  Manifest manifest = DatasetWriter(folder, description).finish({});
  write_code_names(folder, "context_place", std::vector<std::string>{"home", "train", "2", "1"}, manifest);
  manifest.id = dataset_id(manifest.columns);
  manifest.time = {.min = last, .max = last};
  write_file(folder / kManifestFile, manifest_to_json(manifest));
  return Dataset(folder);
}

class JsonRequests : public testing::Test {
 protected:
  RequestBody read(const std::string& body, Asked asked = Asked::scores) const {
    return read_json_requests(body, asked, form_, {"like"});
  }
  std::string refusal(const std::string& body, Asked asked = Asked::scores) const {
    try {
      read(body, asked);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  Dataset dataset_ = with_places(temporary_folder());
  RequestForm form_{dataset_, {false, false}, {false, false}};
};

TEST_F(JsonRequests, CountTextsThatTheDatasetDoesNotHave) {
  const RequestBody one = read(
      R"({"items": [1], "context": {"place": "Train"}, "events": {"item": [1, 2, 3], "time": [1, 2, 3],
          "action": [1, 1, 1], "place": ["home", "moon", ""]}})");
  EXPECT_EQ(one.unknown_texts, 2);
  EXPECT_THAT(one.requests[0].context, ElementsAre(0, 0));
  EXPECT_THAT(one.requests[0].events->context[0], ElementsAre(1, 0, 0));
  EXPECT_EQ(read(R"({"requests": [{"items": [1], "context": {"place": "moon"}},
                                  {"items": [1], "context": {"place": "train"}},
                                  {"items": [1], "context": {"place": "sun"}}]})")
                .unknown_texts,
            2);
}

TEST_F(JsonRequests, ANumberIsNoTextAndATextOfDigitsIsANumberWhereOneIsExpected) {
  const char* body = R"({{"items": [1], "context": {{"place": {0}}}, "events": {{"item": [1], "time": [1],
                         "action": [1], "place": [{0}]}}}})";
  const RequestBody text = read(fmt::format(fmt::runtime(body), "\"1\""));
  EXPECT_EQ(text.requests[0].context[0], 4);
  EXPECT_EQ(text.requests[0].events->context[0][0], 4);
  for (const char* value : {"1", "2", "77", "1.5", "true", "null", "[\"1\"]"})
    EXPECT_THAT(refusal(fmt::format(fmt::runtime(body), value)), HasSubstr("place: expected a text"))
        << value;
  EXPECT_THAT(refusal(R"({"context": {"place": 77}})"), HasSubstr("found 77"));
  EXPECT_EQ(read(R"({"context": {"worth": "-7"}})").requests[0].context[1], -7);
  for (const char* value : {"\"\"", "\"x\"", "\"1.0\"", "1.5", "true", "null", "1e2", "9223372036854775808"})
    EXPECT_THAT(refusal(fmt::format("{{\"context\": {{\"worth\": {}}}}}", value)),
                HasSubstr("worth: expected a whole number of 64 bits"))
        << value;
}

TEST_F(JsonRequests, IdsOf63BitsSurviveBothWays) {
  const std::vector<std::int64_t> ids{9007199254740992, 9007199254740993, 9223372036854775807,
                                      -9007199254740993, 5};
  for (const char* quote : {"", "\""}) {
    const std::string all = fmt::format("{0}{1}{0}", quote, fmt::join(ids, fmt::format("{0}, {0}", quote)));
    const RequestBody body = read("{\"user\": " + fmt::format("{0}{1}{0}", quote, ids[2]) + ", \"items\": [" +
                                  all + "], \"events\": {\"item\": [" + all + "]}}");
    EXPECT_EQ(body.requests[0].user, ids[2]);
    EXPECT_EQ(body.requests[0].items, ids);
    EXPECT_EQ(body.requests[0].events->item, ids);
  }
  const ScoreAnswer answer{.items = ids, .scores = {5, 4, 3, 2, 1}};
  EXPECT_THAT(write_json_answers({answer}, false, Asked::top, "v", form_, {"like"}),
              HasSubstr(R"("items":[9007199254740992,"9007199254740993","9223372036854775807",)"
                        R"("-9007199254740993",5])"));
  EXPECT_THAT(refusal(R"({"user": 9223372036854775808})"),
              HasSubstr("user: expected a whole number of 64 bits"));
  EXPECT_THAT(refusal(R"({"user": 1.0})"), HasSubstr("user: expected a whole number of 64 bits, found 1.0"));
}

TEST_F(JsonRequests, TimesAreReadAsPredictReadsThem) {
  for (const char* time :
       {"1714566600", "\"1714566600\"", "\"2024-05-01T12:30:00Z\"", "\"2024-05-01 14:30:00.5+02\""}) {
    const RequestBody body = read(fmt::format(R"({{"time": {0}, "events": {{"time": [{0}]}}}})", time));
    EXPECT_EQ(body.requests[0].time, 1'714'566'600) << time;
    EXPECT_EQ(body.requests[0].events->time[0], 1'714'566'600) << time;
  }
  for (const char* time : {"\"\"", "\"yesterday\"", "\"2024-13-01\"", "1714566600.0", "null", "true"})
    EXPECT_THAT(refusal(fmt::format(R"({{"time": {}}})", time)), HasSubstr("time: expected a")) << time;
  const Dataset relative = with_places(dataset_.folder() / "relative", 25'000);
  const RequestForm form(relative, {false, false}, {false, false});
  EXPECT_THROW(read_json_requests(R"({"time": "2024-05-01"})", Asked::scores, form, {}), UsageError);
}

TEST_F(JsonRequests, ErrorsNameTheRequestAndTheField) {
  EXPECT_EQ(refusal(R"({"requests": [{"k": 1}, {"k": 1}, {}]})", Asked::top),
            "requests[2]: k: how many items is missing");
  EXPECT_EQ(refusal(R"({"user": 1})", Asked::top), "k: how many items is missing");
  EXPECT_THAT(refusal(R"({"user": 1, "k": 3})"), HasSubstr("unknown field \"k\""));
  for (const char* k : {"\"5\"", "1.0", "null", "true"})
    EXPECT_THAT(refusal(fmt::format("{{\"k\": {}}}", k), Asked::top), HasSubstr("k: expected a whole number"))
        << k;
  EXPECT_THAT(refusal(R"({"requests": [{"items": [1]}, {"items": [1], "items": [2]}]})"),
              HasSubstr("the key \"items\" occurs twice"));
}

}  // namespace
}  // namespace hstu
