// Words for null, and rows that are left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/parquet_files.h"
#include "events/log_fixture.h"
#include "hstu/base/error.h"
#include "hstu/dataset/dataset.h"
#include "hstu/prepare/prepare.h"
#include "prepare/verified.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Nulls : public LogTest {
 protected:
  Nulls() : LogTest("*.csv") {}

  void write(const std::string& rows, const std::string& header = "user,item,at,kind") {
    write_file(input_ / "log.csv", header + "\n" + rows);
  }

  // What preparing prints on stderr.
  std::string prepare_it(const std::string& name) {
    testing::internal::CaptureStderr();
    manifest_ = prepare(schema_, input_, input_ / name);
    EXPECT_THAT(wrong(input_ / name), IsEmpty());
    return testing::internal::GetCapturedStderr();
  }

  std::string failure() {
    try {
      prepare(schema_, input_, input_ / "failed");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  Manifest manifest_;
};

TEST_F(Nulls, WarnOfIdsThatAreWordsForNull) {
  write("NULL,x,1,a\nNULL,y,2,a\nu,\\N,3,a\nnone of them,Nulla,4,a\n");
  const std::string printed = prepare_it("ds");
  EXPECT_THAT(printed, AllOf(HasSubstr("column \"user\": 2 events have the user id NULL"),
                             HasSubstr("column \"item\": 1 events have the item id \\N"),
                             HasSubstr("nulls = ['\\N']"), HasSubstr("drop_null = [\"item\"]")));
  EXPECT_THAT(printed, Not(HasSubstr("Nulla")));
  EXPECT_EQ(manifest_.counts.users, 3);
}

TEST_F(Nulls, AreWordsThatTheSchemaLists) {
  schema_.nulls = {"NULL", "\\N"};
  schema_.context = {{.name = "kind", .column = "kind"}};
  schema_.null_as_zero = {"kind"};
  write("u,x,1,\\N\nv,y,2,a\nv,NULL x,3,NULL\n");
  EXPECT_THAT(prepare_it("csv"), Not(HasSubstr("warning: column")));
  const Dataset dataset(input_ / "csv");
  std::int64_t coded = 0;
  for (std::int64_t p = 0; p < 3; ++p) coded += dataset.context("kind")[p];
  EXPECT_EQ(coded, 1);  // of the text a
  write("NULL,x,1,a\n");
  EXPECT_THAT(failure(), AllOf(HasSubstr("column \"user\": line 2: expected a value, found null"),
                               HasSubstr("drop_null = [\"user\"]"), Not(HasSubstr("null_as_zero"))));
}

TEST_F(Nulls, AreTheSameWordsInParquetAndAmongIntegers) {
  schema_.files = {"*.parquet"};
  schema_.nulls = {"None"};
  schema_.drop_null = {"user"};
  write_parquet(input_ / "log.parquet", {{"user", texts({"None", "u", "None", "v"})},
                                         {"item", array<arrow::Int64Type>({1, 2, 3, 4})},
                                         {"at", array<arrow::Int64Type>({1, 2, 3, 4})}});
  EXPECT_THAT(prepare_it("parquet"), HasSubstr("left out 2 rows: 2 with nulls"));
  EXPECT_EQ(manifest_.counts.users, 2);
  schema_.files = {"*.csv"};
  schema_.csv->integers = {"user"};
  write("None,1,1,a\n7,2,2,a\n");
  prepare_it("integers");
  EXPECT_EQ(manifest_.counts.users, 1);
  schema_.nulls = {};
  EXPECT_THAT(failure(), HasSubstr("found \"None\"; if it means null, set nulls = [\"None\"]"));
}

TEST_F(Nulls, AreLeftOutWhereTheSchemaSaysSo) {
  schema_.drop_null = {"user", "at", "kind"};
  write("u,x,1,a\n,x,2,a\nu,x,,a\nv,y,4,\nv,y,5,b\n");
  EXPECT_THAT(prepare_it("ds"), HasSubstr("left out 3 rows: 3 with nulls (drop_null), 0 that"));
  EXPECT_EQ(manifest_.counts.events, 2);
  write("u,x,1,a\n,x,2,a\nu,,3,a\n");
  EXPECT_THAT(failure(), HasSubstr("column \"item\": line 4: expected a value"));
  write(",x,2,a\n");
  EXPECT_THAT(failure(), HasSubstr("no events (*.csv): drop_null and keep leave out all of its rows"));
}

TEST_F(Nulls, InTheTimeAreNamedAlsoWithASplit) {
  schema_.split = SplitRule{.train_days = 1, .gap_minutes = 0, .test_days = 1};
  write("u,x,1,a\nu,x,,a\n");
  EXPECT_THAT(failure(), HasSubstr("column \"at\": line 3: expected a time, found null"));
}

TEST_F(Nulls, OfNoUserAreNotToBeReadAsZero) {
  schema_.null_as_zero = {"user"};
  write("u,x,1,a\n");
  EXPECT_THAT(failure(), HasSubstr("which every event must have; drop_null leaves out rows without it"));
  schema_.null_as_zero = schema_.drop_null = {"kind"};
  EXPECT_THAT(failure(), HasSubstr("drop_null: \"kind\" is in null_as_zero too"));
}

TEST_F(Nulls, AndRowsThatKeepDoesNotNameAreLeftOut) {
  schema_.keep = {parse_condition("kind != bot"), parse_condition("price > 0")};
  write("u,x,1,a,1.5\nu,y,2,bot,1\nv,x,3,a,0\nv,x,4,b,2\nv,z,90000,bot,1\n", "user,item,at,kind,price");
  EXPECT_THAT(prepare_it("ds"), HasSubstr("left out 3 rows: 0 with nulls (drop_null), 3 that"));
  EXPECT_EQ(manifest_.counts.events, 2);
  EXPECT_EQ(manifest_.time.max, 4);
  // The last event is one that is kept.
  schema_.split = SplitRule{.train_days = 1, .gap_minutes = 0, .test_days = 1};
  EXPECT_THAT(failure(), HasSubstr("no event is left to train on: the log spans [1, 4] seconds"));
  schema_.drop_null = {"at", "kind", "at"};
  schema_.keep.push_back(parse_condition("at != 4"));
  EXPECT_THAT(failure(), HasSubstr("the log spans [1, 1] seconds"));
}

}  // namespace
}  // namespace hstu
