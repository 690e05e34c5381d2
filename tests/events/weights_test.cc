// Weights of events: from the log to the dataset.
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events/log_fixture.h"
#include "hstu/base/error.h"
#include "hstu/dataset/dataset.h"
#include "hstu/prepare/append.h"
#include "hstu/prepare/prepare.h"
#include "prepare/verified.h"

namespace hstu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class Weights : public LogTest {
 protected:
  Weights() : LogTest("*.csv") { schema_.weight = "w"; }

  void write(const std::string& rows) const { write_file(input_ / "log.csv", "user,item,at,w\n" + rows); }

  std::vector<float> prepared(const std::string& name) {
    prepare(schema_, input_, input_ / name);
    EXPECT_THAT(wrong(input_ / name), IsEmpty());
    return weights(name);
  }
  std::vector<float> weights(const std::string& name) const {
    const Dataset dataset(input_ / name);
    std::vector<float> all;
    for (std::int64_t u = 0; dataset.has_weights() && u < dataset.users(); ++u)
      dataset.events_of(u).each([&](std::int64_t p) { all.push_back(dataset.weight(p)); });
    return all;
  }
  std::string failure(const Schema& schema) const {
    try {
      validate(schema, "schema.toml");
      prepare(schema, input_, input_ / "failed");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(Weights, AreThoseOfTheColumnInTheOrderOfTheDataset) {
  schema_.csv->integers = {"user"};
  write("2,x,5,0.5\n1,y,9,3\n2,x,1,0\n1,z,3,-0\n");
  EXPECT_THAT(prepared("ds"), ElementsAre(0.0f, 3.0f, 0.0f, 0.5f));
  EXPECT_FALSE(std::signbit(weights("ds")[0]));
}

TEST_F(Weights, OfActionsMultiplyWithTheColumn) {
  schema_.actions.push_back({.name = "large", .bit = 2, .when = {parse_condition("w > 2")}, .weight = 10});
  schema_.actions[0].weight = 0.5;
  write("a,x,1,2\na,x,2,3\n");
  EXPECT_THAT(prepared("both"), ElementsAre(1.0f, 15.0f));
  schema_.weight = "";
  EXPECT_THAT(prepared("actions"), ElementsAre(0.5f, 5.0f));
  schema_.actions[0].weight = schema_.actions[1].weight = 1;
  EXPECT_THAT(prepared("none"), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(input_ / "none" / kWeightFile));
}

// Each with its row and the number of the file, whatever its action makes of it; and an empty field that may
// be one.
TEST_F(Weights, ThatAreNoneAreRefused) {
  for (const auto& [value, why] : std::vector<std::pair<std::string, std::string>>{
           {"-0.5", "found -0.5"},
           {"1e39", "found 1e+39"},
           {"1e-320", "expected 0 or a number from 1.2e-38 to 3.4e38 for the weight"},
           {"inf", "the column is the weight"},
           {"nan", "the column is the weight"},
           {"many", "the column is the weight"},
           {"", "expected a value, found null"}}) {
    write("a,x,1,1\na,x,2," + value + "\n");
    for (const double factor : {0.0, 5.0, 1.0}) {
      schema_.actions[0].weight = factor;
      EXPECT_THAT(failure(schema_), AllOf(HasSubstr("column \"w\": line 3"), HasSubstr(why)))
          << value << " times " << factor;
    }
  }
  schema_.null_as_zero = {"w"};
  EXPECT_THAT(prepared("zero"), ElementsAre(1.0f, 0.0f));
  schema_.actions[0].weight = -1;
  EXPECT_THAT(failure(schema_), HasSubstr("action \"any\": weight: expected 0 or a number"));
  schema_.actions[0].weight = 1e38;
  write("a,x,1,1\na,x,2,1e10\n");
  EXPECT_THAT(failure(schema_), HasSubstr("times those of the event's actions, found 1e+48"));
  schema_.weight = "at";
  EXPECT_THAT(failure(schema_), HasSubstr("the same column, \"at\""));
}

TEST_F(Weights, OfAppendedEventsFollow) {
  write("a,x,1,1\nb,x,2,2\n");
  EXPECT_THAT(prepared("ds"), UnorderedElementsAre(1.0f, 2.0f));
  write("a,x,3,0.25\n");
  append(schema_, input_, input_ / "ds");
  EXPECT_THAT(wrong(input_ / "ds"), IsEmpty());
  EXPECT_THAT(weights("ds"), UnorderedElementsAre(0.25f, 1.0f, 2.0f));
  schema_.weight = "";
  try {
    append(schema_, input_, input_ / "ds");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("weights: expected of each event, found none"));
  }
}

}  // namespace
}  // namespace hstu
