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
