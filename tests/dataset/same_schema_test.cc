#include "hstu/dataset/same_schema.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Manifest shop() {
  Manifest manifest;
  manifest.actions = {{"bought", 1}, {"viewed", 2}};
  manifest.label = "bought";
  manifest.pools = {"bought", "viewed"};
  manifest.context = {"page"};
  manifest.attributes = {"brand"};
  return manifest;
}

std::string difference(const std::function<void(Manifest&)>& change) {
  Manifest other = shop();
  change(other);
  try {
    check_same_schema(shop(), "mine", other, "theirs");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(SameSchema, NamesTheFirstDifference) {
  EXPECT_EQ(difference([](Manifest&) {}), "");
  EXPECT_EQ(difference([](Manifest& m) { m.attributes.emplace_back("colour"); }), "");
  EXPECT_THAT(difference([](Manifest& m) { m.actions[1].bit = 4; }),
              AllOf(HasSubstr("theirs: actions and their bits: expected bought = 1, viewed = 2, as in mine"),
                    HasSubstr("found bought = 1, viewed = 4")));
  EXPECT_THAT(difference([](Manifest& m) { m.times = Times::kOrder; }),
              HasSubstr("times: expected times in seconds, as in mine of the run, found an order without"));
  EXPECT_THAT(difference([](Manifest& m) { m.label = "viewed"; }),
              HasSubstr("label: expected bought, as in mine of the run, found viewed"));
  EXPECT_THAT(difference([](Manifest& m) { m.pools = {"bought"}; }),
              HasSubstr("pools: expected bought, viewed"));
  EXPECT_THAT(difference([](Manifest& m) { m.context.clear(); }),
              HasSubstr("context columns: expected page, as in mine of the run, found none"));
  EXPECT_THAT(difference([](Manifest& m) { m.attributes = {"colour"}; }),
              HasSubstr("item attributes: expected brand"));
  EXPECT_THAT(difference([](Manifest& m) { m.hashed["item"] = 0; }),
              HasSubstr("ids of items: expected numbers, as in mine of the run, found hashes of texts"));
}

}  // namespace
}  // namespace hstu
