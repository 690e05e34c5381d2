#include "hstu/predict/request_reader.h"

#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/dataset/names_writer.h"
#include "hstu/dataset/writer.h"
#include "support/iso_texts.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Ids = std::vector<std::int64_t>;

// Of two datasets without events: ids are numbers in one, and hashes of texts in the other. The context
// column "place" has texts with codes, and "worth" has numbers.
class Requests : public ::testing::Test {
 protected:
  RequestReader open(const std::string& text, const Dataset& dataset, bool catalogue = false,
                     const ColumnNames& names = {}) {
    write_file(folder_ / "t.csv", text);
    return {folder_ / "t.csv", names, dataset, needed_, catalogue};
  }
  std::vector<Request> read(const std::string& text, const Dataset& dataset, bool catalogue = false,
                            const ColumnNames& names = {}) {
    RequestReader reader = open(text, dataset, catalogue, names);
    std::vector<Request> all;
    for (Request request; reader.next(request);) all.push_back(request);
    return all;
  }
  Items catalogue(const std::string& text, bool texts) {
    write_file(folder_ / "t.csv", text);
    return read_catalogue(folder_ / "t.csv", {}, texts);
  }
  template <typename ErrorType = Error>
  static std::string complaint(const std::function<void()>& body) {
    try {
      body();
    } catch (const ErrorType& error) {
      return error.what();
    }
    return "";
  }
  std::string refusal(const std::string& text, bool catalogue = false) {
    return complaint([&] { read(text, numbers_, catalogue); });
  }

 private:
  Dataset dataset(const std::string& name, bool hashed) const {
    const Path folder = folder_ / name;
    std::filesystem::create_directories(folder);
    Manifest description;
    description.name = "small";
    description.actions = {{"like", 1}};
    description.label = "like";
    description.pools = {"like"};
    description.context = {"worth", "place"};
    Manifest manifest = DatasetWriter(folder, description).finish({});
    write_code_names(folder, "context_place", std::vector<std::string>{"home", "shop"}, manifest);
    if (hashed) manifest.hashed = {{"user", 0}, {"item", 0}};
    manifest.id = dataset_id(manifest.columns);
    write_file(folder / kManifestFile, manifest_to_json(manifest));
    return Dataset(folder);
  }

 protected:
  const Path folder_ = temporary_folder();
  const Dataset numbers_ = dataset("numbers", false), texts_ = dataset("texts", true);
  std::vector<bool> needed_{false, false};
};

TEST_F(Requests, HaveAnItemOrCandidatesInTheirOrder) {
  const std::vector<Request> items = read("time,item,user\n10,5,7\n-11,-6,0\n", numbers_);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[1].number, 2);
  EXPECT_EQ(items[1].id, "2");
  EXPECT_EQ(items[1].user, 0);
  EXPECT_EQ(items[1].user_text, "0");
  EXPECT_EQ(items[1].time, -11);
  EXPECT_EQ(items[1].items.ids, Ids{-6});
  EXPECT_EQ(items[1].context, (Ids{0, 0}));

  const std::vector<Request> lists =
      read("request,user,time,candidates\na,1,2,3 1 3\nb,1,2,\"[4, 5]\"\n,1,2,\" 6,,7 \"\n", numbers_);
  ASSERT_EQ(lists.size(), 3u);
  EXPECT_EQ(lists[0].id, "a");
  EXPECT_EQ(lists[2].id, "");
  EXPECT_EQ(lists[0].items.ids, (Ids{3, 1, 3}));
  EXPECT_EQ(lists[1].items.ids, (Ids{4, 5}));
  EXPECT_EQ(lists[2].items.ids, (Ids{6, 7}));
  EXPECT_TRUE(lists[0].items.texts.empty());
}

TEST_F(Requests, HaveIdsOfTextsWhereTheDatasetHasThem) {
  const std::vector<Request> requests = read("user,time,candidates\n17,1,x 17\n", texts_);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].user, id_of_text("17"));
  EXPECT_EQ(requests[0].user_text, "17");
  EXPECT_EQ(requests[0].items.ids, (Ids{id_of_text("x"), id_of_text("17")}));
  EXPECT_THAT(requests[0].items.texts, ElementsAre("x", "17"));
  EXPECT_THAT(complaint([&] { read("user,time,item\n,1,x\n", texts_); }),
              HasSubstr("t.csv line 2: column user: expected an id, found nothing"));
}

TEST_F(Requests, TimesAreRoundedDownToSeconds) {
  ColumnNames names;
  names.time_step = TimeStep::milliseconds;
  const std::vector<Request> ms =
      read("user,time,item\n1,1999,1\n1,-1,1\n1,-1000,1\n", numbers_, false, names);
  EXPECT_EQ(ms[0].time, 1);
  EXPECT_EQ(ms[1].time, -1);
  EXPECT_EQ(ms[2].time, -1);
}

TEST_F(Requests, TimesMayBeIso8601) {
  const std::vector<Request> requests =
      read("user,time,item\n1,2023-11-14T22:13:20Z,1\n1,1700000000,1\n", numbers_);
  EXPECT_EQ(requests[0].time, 1'700'000'000);
  EXPECT_EQ(requests[1].time, 1'700'000'000);
  EXPECT_THAT(
      refusal("user,time,item\n1,2023-11-31,1\n"),
      HasSubstr("t.csv line 2: column time: expected a time, a whole number of at most 64 bits or ISO"));
}

TEST_F(Requests, ReadTheTextsThatPrepareReads) {
  for (const IsoText& expected : iso_texts())
    EXPECT_EQ(read(fmt::format("user,time,item\n1,{},1\n", expected.text), numbers_)[0].time,
              expected.seconds)
        << expected.text;
  for (const std::string& text : texts_that_are_no_times())
    EXPECT_THAT(refusal(fmt::format("user,time,item\n1,{},1\n", text)), HasSubstr("expected a time")) << text;
}

// With ms read as seconds every history was complete: other scores, and nothing was said.
TEST_F(Requests, ATimeInAnotherUnitIsRefused) {
  EXPECT_THAT(complaint<UsageError>([&] { read("user,time,item\n1,5,1\n1,1703000000000,1\n", numbers_); }),
              HasSubstr("t.csv line 3: column time: with --time-unit s the time 1703000000000 is in the year "
                        "55935, with --time-unit ms in 2023: change it"));
  for (const TimeStep step :
       {TimeStep::seconds, TimeStep::milliseconds, TimeStep::microseconds, TimeStep::nanoseconds}) {
    ColumnNames names;
    names.time_step = step;
    std::string time = "1703000000";
    for (const TimeStep unit :
         {TimeStep::seconds, TimeStep::milliseconds, TimeStep::microseconds, TimeStep::nanoseconds}) {
      const auto body = [&] { return read("user,time,item\n1," + time + ",1\n", numbers_, false, names); };
      if (unit == step) {
        EXPECT_EQ(body()[0].time, 1'703'000'000);
      } else {
        EXPECT_THROW(body(), UsageError) << word_of(kTimeSteps, step) << " " << time;
      }
      time += "000";
    }
  }
}

TEST_F(Requests, TimesThatDoNotCountFrom1970AreNumbersOfAnySize) {
  const auto read_relative = [&](const std::string& time) {
    write_file(folder_ / "t.csv", "user,time,item\n1," + time + ",1\n");
    RequestReader reader(folder_ / "t.csv", {}, numbers_, needed_, false, false);
    Request request;
    reader.next(request);
    return request.time;
  };
  EXPECT_EQ(read_relative("1703000000000"), 1'703'000'000'000);
  EXPECT_THAT(complaint([&] { read_relative("2023-11-14"); }), HasSubstr("do not count from 1970"));
}

TEST_F(Requests, ColumnsMayHaveOtherNames) {
  ColumnNames names;
  names.rename({"user=uid", "item=sku"});
  EXPECT_EQ(read("sku,uid,time\n5,7,1\n", numbers_, false, names)[0].user, 7);
  EXPECT_THAT(complaint<UsageError>([&] { open("sku,user,time\n", numbers_, false, names); }),
              HasSubstr("there is no column \"uid\""));
  EXPECT_THAT(complaint<UsageError>([&] { names.rename({"usr=x"}); }),
              AllOf(HasSubstr("\"usr\""), HasSubstr("user")));
  EXPECT_THAT(complaint<UsageError>([&] { names.rename({"user="}); }), HasSubstr("\"user=\""));
}

TEST_F(Requests, HaveTheContextThatIsNeededAndCountTextsThatTheDatasetLacks) {
  needed_ = {true, true};
  RequestReader reader =
      open("user,time,item,place,worth\n1,1,1,shop,-4\n1,1,1,moon,3\n1,1,1,,0\n1,1,1,home,1\n", numbers_);
  std::vector<Ids> context;
  for (Request request; reader.next(request);) context.push_back(request.context);
  EXPECT_EQ(context, (std::vector<Ids>{{-4, 2}, {3, 0}, {0, 0}, {1, 1}}));
  EXPECT_EQ(reader.unknown_texts(), 2);
  needed_ = {false, true};
  EXPECT_EQ(read("user,time,item,place,worth\n1,1,1,shop,x\n", numbers_)[0].context, (Ids{0, 2}));
  EXPECT_THAT(complaint<UsageError>([&] { open("user,time,item,worth\n", numbers_); }),
              HasSubstr("there is no column \"place\""));
}

TEST_F(Requests, ForACatalogueHaveNoItems) {
  const std::vector<Request> requests = read("user,time\n7,1\n", numbers_, true);
  EXPECT_TRUE(requests.at(0).items.ids.empty());
  EXPECT_THAT(refusal("user,time,item\n7,1,2\n", true), HasSubstr("its column \"item\" and the catalogue"));
  EXPECT_THAT(refusal("user,time,candidates\n7,1,2\n", true), HasSubstr("its column \"candidates\""));
}

TEST_F(Requests, MistakesAreNamedWithLineAndColumn) {
  EXPECT_THAT(refusal("user,time\n"),
              HasSubstr("expected a column \"item\" with an item, or \"candidates\""));
  EXPECT_THAT(refusal("user,time,item,candidates\n"), HasSubstr("\"item\" or \"candidates\", found both"));
  EXPECT_THAT(refusal("time,item\n"), HasSubstr("there is no column \"user\""));
  EXPECT_THAT(refusal("user,item\n"), HasSubstr("there is no column \"time\""));
  EXPECT_THAT(refusal("user,time,item\n1,1,1\nx,1,1\n"), HasSubstr("t.csv line 3: column user: "));
  EXPECT_THAT(refusal("user,time,item\n1,1.5,1\n"), HasSubstr("line 2: column time: "));
  EXPECT_THAT(refusal("user,time,item\n1,1,\n"), HasSubstr("line 2: column item: "));
  EXPECT_THAT(
      refusal("user,time,candidates\n1,1,1 x\n"),
      HasSubstr("line 2: column candidates: expected whole numbers separated by spaces, found \"x\""));
  for (const char* empty : {"", "[]", "\" , \"", "[ ]"})
    EXPECT_THAT(refusal(std::string("user,time,candidates\n1,1,") + empty + "\n"),
                HasSubstr("the list has no candidates"))
        << empty;
}

TEST_F(Requests, ACatalogueHasItemsInItsOrderEachOnce) {
  EXPECT_EQ(catalogue("more,item\nx,3\ny,-1\n", false).ids, (Ids{3, -1}));
  const Items texts = catalogue("item\nb\na\n", true);
  EXPECT_EQ(texts.ids, (Ids{id_of_text("b"), id_of_text("a")}));
  EXPECT_THAT(texts.texts, ElementsAre("b", "a"));
  EXPECT_THAT(complaint([&] { catalogue("item\n3\n4\n3\n", false); }),
              HasSubstr("t.csv line 4: column item: the item 3 occurs a second time"));
  EXPECT_THAT(complaint([&] { catalogue("item\n", false); }), HasSubstr("the catalogue has no items"));
}

}  // namespace
}  // namespace hstu
