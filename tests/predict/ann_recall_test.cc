#include "hstu/predict/ann_recall.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/dataset/names.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::HasSubstr;

class AnnRecallTest : public testing::Test {
 protected:
  Path file(const std::string& name, const std::string& text) const {
    write_file(folder_ / name, text);
    return folder_ / name;
  }
  AnnRecall compare(const std::string& answers, const std::string& exact,
                    std::vector<std::int64_t> cutoffs = {}) const {
    return ann_recall({.answers = file("answers.csv", answers),
                       .exact = file("exact.csv", exact),
                       .cutoffs = std::move(cutoffs)});
  }
  std::string problem(const std::string& answers, const std::string& exact) const {
    try {
      compare(answers, exact);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
  const Path folder_ = temporary_folder();
};

constexpr const char* kExact = "user,item,score,rank\n7,a,3,1\n7,b,2,2\n8,a,5,1\n8,c,4,2\n9,x,1,1\n";

TEST_F(AnnRecallTest, IsTheMeanShareOfTheExactFirstKAmongTheFirstKOfTheIndex) {
  // 7: one of two, and not the first; 8: both in another order; 9: no answer; 10: not asked.
  const AnnRecall found = compare("rank,item,user\n1,b,7\n2,z,7\n1,c,8\n2,a,8\n1,a,10\n", kExact, {2, 1});
  EXPECT_EQ(found.cutoffs, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(found.lists, 3);
  EXPECT_EQ(found.without_answer, 1);
  EXPECT_EQ(found.unknown, 1);
  EXPECT_EQ(found.recall[0], 0.0);
  EXPECT_DOUBLE_EQ(found.recall[1], 0.5);
}

TEST_F(AnnRecallTest, ExactAnswersHaveRecallOneInAnyOrderOfRows) {
  const AnnRecall found = compare("user,item,rank\n9,x,1\n8,c,2\n7,b,2\n7,a,1\n8,a,1\n", kExact);
  EXPECT_EQ(found.cutoffs, std::vector<std::int64_t>{1});  // no list has ten items
  EXPECT_EQ(found.recall, std::vector<double>{1});
  EXPECT_EQ(to_json(found).at("recall@1"), 1.0);
}

TEST_F(AnnRecallTest, RowsWithoutRanksAreInOrderAndARepeatedAnswerCountsOnce) {
  const AnnRecall found = compare("user,item\n7,b\n7,b\n7,a\n8,a\n8,c\n9,x\n", kExact, {2});
  EXPECT_DOUBLE_EQ(found.recall[0], (0.5 + 1 + 1) / 3);  // a is the third answer of 7
}

TEST_F(AnnRecallTest, RequestsNameListsIfBothTablesHaveThem) {
  const std::string exact = "request,user,item,rank\nr1,7,a,1\nr2,7,b,1\n";
  EXPECT_EQ(compare("request,user,item\nr2,7,b\nr1,7,a\n", exact, {1}).recall[0], 1.0);
  // By users there is one list, of two requests.
  EXPECT_THAT(problem("user,item\n7,b\n", exact), HasSubstr("the list of 7 has the rank 1 twice"));
}

TEST_F(AnnRecallTest, ATextAndItsNumberAreOneId) {
  const std::string a = std::to_string(id_of_text("a")), of_10 = std::to_string(id_of_text("10"));
  const std::string exact = "user,item\nu1,a\nu1,10\n";
  const std::string u1 = std::to_string(id_of_text("u1"));
  for (const std::string& answers :
       {"user,item\n" + u1 + "," + a + "\nu1," + of_10 + "\n", std::string("user,item\nu1,a\nu1,10.0\n")}) {
    EXPECT_EQ(compare(answers, exact, {2}).recall[0], 1) << answers;
    EXPECT_EQ(compare(exact, answers, {2}).recall[0], 1) << answers;
    EXPECT_EQ(compare(answers, exact, {2}).unknown, 0) << answers;
  }
  EXPECT_EQ(compare("user,item\nu1,A\nu1,010\n", exact, {2}).recall[0], 0);  // other texts
}

TEST_F(AnnRecallTest, RefusesARankThatAListHasTwice) {
  EXPECT_THAT(problem("user,item,rank\n7,b,1\n7,a,1\n", kExact),
              HasSubstr("answers.csv: the list of 7 has the rank 1 twice"));
}

TEST_F(AnnRecallTest, RefusesACutoffBeyondTheExactLists) {
  EXPECT_THROW(compare(kExact, kExact, {2, 3}), UsageError);
}

TEST_F(AnnRecallTest, NamesWhatIsWrong) {
  EXPECT_THAT(problem("user,items\n7,a\n", kExact), HasSubstr("item"));
  EXPECT_THAT(problem("user,item,rank\n7,a,0\n", kExact), HasSubstr("line 2"));
  EXPECT_THAT(problem("user,item\n7,a\n", "user,item,rank\n7,a,1\n7,a,2\n"), HasSubstr("twice"));
  EXPECT_THAT(problem("user,item\n7,a\n", "user,item\n"), HasSubstr("no row"));
  EXPECT_EQ(problem("user,item\n", kExact), "");  // an index that answers nothing
}

}  // namespace
}  // namespace hstu
