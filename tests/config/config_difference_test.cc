#include "hstu/config/config_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Feature {
  std::string name;
  std::int64_t rows = 3;
};
struct Loop {
  std::int64_t epochs = 1;
  double rate = 0.5;
};
struct Sample {
  Loop loop;
  std::vector<Feature> features;
};

void describe(ConfigFields& f, Feature& o) {
  f.field("name", o.name, "");
  f.field("rows", o.rows, "");
}
void describe(ConfigFields& f, Loop& o) {
  f.field("epochs", o.epochs, "");
  f.field("rate", o.rate, "");
}
void describe(ConfigFields& f, Sample& o) {
  f.section("loop", o.loop, "");
  f.sections("features", o.features, "");
}

std::string refusal(const Sample& before, const Sample& after, const std::vector<std::string>& allowed = {}) {
  const auto now = config_values(after);
  try {
    check_differences(differences(config_values(before), now), allowed, now, "the run r");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ConfigDifference, NamesEveryKeyThatDiffersWithBothValues) {
  const Sample before{{}, {{"a", 3}, {"b", 4}}}, after{{2, 0.25}, {{"a", 5}}};
  EXPECT_EQ(refusal(before, before), "");
  EXPECT_THAT(
      refusal(before, after),
      AllOf(HasSubstr("the run r"), HasSubstr("loop.epochs: 1 there, 2 here"),
            HasSubstr("loop.rate: 0.5 there, 0.25 here"), HasSubstr("features[0].rows: 3 there, 5 here"),
            HasSubstr("features[1].name: \"b\" there, absent here"), HasSubstr("--allow-change")));
}

TEST(ConfigDifference, WhatMayChangeIsAKeyASectionOrAList) {
  const Sample before{{}, {{"a", 3}}}, after{{2, 0.5}, {{"a", 5}}};
  EXPECT_THAT(refusal(before, after, {"loop.epochs"}),
              AllOf(HasSubstr("features[0].rows"), Not(HasSubstr("epochs"))));
  EXPECT_EQ(refusal(before, after, {"loop", "features"}), "");
  EXPECT_EQ(refusal(before, before, {"loop.rate"}), "") << "what may change need not";
}

TEST(ConfigDifference, AnUnknownNameIsRefused) {
  EXPECT_THAT(refusal({}, {}, {"loop.epoch"}), HasSubstr("loop.epochs"));
  EXPECT_THAT(refusal({}, {}, {"lo"}), HasSubstr("lo: the key does not exist"));
}

}  // namespace
}  // namespace hstu
