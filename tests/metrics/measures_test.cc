#include "hstu/metrics/measures.h"

#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

Measures some() {
  Measures measures;
  measures.add("auc", 1.0);
  measures.add("ne", std::nullopt);
  measures.add_count("n", 12);
  return measures;
}

TEST(Measures, AreFoundByName) {
  EXPECT_EQ(some().find("auc"), 1.0);
  EXPECT_EQ(some().find("ne"), std::nullopt);
  EXPECT_EQ(some().find("n"), 12.0);
  EXPECT_EQ(some().count("n"), 12);
  EXPECT_EQ(some().count("auc"), 0);
  EXPECT_EQ(some().find("mrr"), std::nullopt);
}

// Trap: 1.0 comes back as a count, or 0.1 + 0.2 as 0.3.
TEST(Measures, SurviveJsonInOrderAndInEveryBit) {
  Measures all;
  all.add(some(), "window_");
  all.add("sum", 0.1 + 0.2);
  EXPECT_EQ(to_json(all).dump(),
            R"({"window_auc":1.0,"window_ne":null,"window_n":12,"sum":0.30000000000000004})");
  EXPECT_EQ(measures_from_json(Json::parse(to_json(all).dump())), all);
  EXPECT_EQ(to_json(Measures()).dump(), "{}");
}

TEST(Measures, RefuseWhatIsNoNumber) {
  for (const char* text : {R"({"auc":"high"})", R"({"auc":[1]})", "[]", "7"})
    EXPECT_THROW(measures_from_json(Json::parse(text)), Error) << text;
}

}  // namespace
}  // namespace hstu
