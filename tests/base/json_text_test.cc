#include "hstu/base/json_text.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    parse_json(text, "a.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonText, RefusesBracketsThatWouldExhaustTheStack) {
  EXPECT_THAT(refusal(std::string(200'000, '[')),
              HasSubstr("a.json: byte 64: its lists and objects are nested"));
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(refusal(objects), HasSubstr("nested deeper than 64"));
  EXPECT_EQ(refusal(std::string(64, '[') + std::string(64, ']')), "");
}

TEST(JsonText, CountsNoBracketOfAString) {
  EXPECT_EQ(refusal("{\"" + std::string(100, '[') + "\": \"\\\"" + std::string(100, '{') + "\"}"), "");
}

TEST(JsonText, NamesFileAndByteOfWhatIsNotJson) {
  EXPECT_EQ(refusal("{\"a\": 1"), "a.json: byte 8: not JSON: the file is torn or was altered");
  EXPECT_THAT(refusal(""), HasSubstr("a.json: byte 1: not JSON"));
}

TEST(JsonText, RefusesAKeyThatOccursTwiceInAnObjectAtAnyDepth) {
  EXPECT_EQ(refusal(R"({"a": 1, "b": 2, "a": 1})"),
            "a.json: the key \"a\" occurs twice in an object: the file is torn or was altered");
  EXPECT_THAT(refusal(R"([{"x": {"a": 1, "\u0061": 2}}])"), HasSubstr("the key \"a\" occurs twice"));
  EXPECT_EQ(refusal(R"({"a": {"a": [{"a": 1}, {"a": 2}]}, "b": {"a": 1}})"), "");
  std::string members;
  for (int i = 0; i < 100; ++i) members += fmt::format("\"k{}\": [], ", i);
  EXPECT_EQ(refusal("{" + members + "\"k\": 1}"), "");
  EXPECT_THAT(refusal("{" + members + "\"k99\": 1}"), HasSubstr("the key \"k99\" occurs twice"));
}

TEST(JsonText, ReadsWhatTheLibraryReads) {
  const std::string text =
      R"({"z": [1, -2, 9223372036854775807, 18446744073709551615, 1.5e3, true, null, "a\nb", {}, []],
                               "a": {"b": {"c": [[1], [{"d": ""}]]}}})";
  EXPECT_EQ(parse_json(text).dump(), Json::parse(text).dump());
  EXPECT_EQ(parse_json(" 7 "), 7);
  EXPECT_EQ(refusal("1e999"), "a.json: a number is too large: the file is torn or was altered");
}

template <typename Body>
std::string problem(const Body& body) {
  const Json list = Json::array({1}), object = Json::object();
  try {
    body(list, object);
  } catch (const nlohmann::json::exception& error) {
    return json_problem(error);
  }
  return "";
}

TEST(JsonText, SaysWhatIsWrongInItsOwnWords) {
  EXPECT_EQ(problem([](const Json& list, const Json&) { return list.value("a", 1); }),
            "expected an object, found array");
  EXPECT_EQ(problem([](const Json& list, const Json&) { return list.at("a"); }),
            "expected an object, found array");
  EXPECT_EQ(problem([](const Json&, const Json& object) { return object.at("samples"); }),
            "the field \"samples\" is missing");
  EXPECT_EQ(problem([](const Json& list, const Json&) { return list.get<std::string>(); }),
            "expected a value of the type string, found array");
  EXPECT_EQ(problem([](const Json& list, const Json&) { return list.at(7); }), "a list has too few elements");
}

}  // namespace
}  // namespace hstu
