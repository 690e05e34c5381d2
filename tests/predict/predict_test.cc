// Scores of requests: those of evaluations, for whatever batches, models and sources of histories.
#include "hstu/predict/predict.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"
#include "hstu/base/npy.h"
#include "hstu/base/text.h"
#include "hstu/predict/csv_reader.h"
#include "hstu/predict/export.h"
#include "predict/predict_fixture.h"
#include "support/kind_options.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Predict;

std::string message(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(Predict, ScoresAreThoseOfTheEvaluation) {
  options_.data.options.strategy = HistoryStrategy::interleaved;
  dlrmv4_of(options_).query_time = QueryTime::last_event;
  train_and_evaluate();
  write_anchors(folder_ / "requests.csv");
  ASSERT_GT(evaluated().size(), 100u);
  EXPECT_EQ(floats(scored(request("a.csv"))["score"]), evaluated());
  PredictOptions by_seven = request("b.csv");
  by_seven.batch_size = 7;
  EXPECT_EQ(floats(scored(by_seven)["score"]), evaluated());
  EXPECT_EQ(last_.requests, static_cast<std::int64_t>(evaluated().size()));
  EXPECT_EQ(last_.without_history, 0);
}

TEST_F(Predict, ScoresOfTheSecondModelAreThoseOfTheEvaluation) {
  use_ranking(32, {"positive", "negative"});
  options_.training.micro_batch_tokens = 100;
  train_and_evaluate();
  write_anchors(folder_ / "requests.csv");
  Columns scores = scored(request("a.csv"));
  EXPECT_EQ(floats(scores["score_positive"]), evaluated());
  EXPECT_EQ(floats(scores["score_negative"]), evaluated("score_1.npy"));
}

TEST_F(Predict, AnExportAndATableOfEventsReplaceTheRun) {
  train_and_evaluate();
  write_anchors(folder_ / "requests.csv");
  write_events(folder_ / "events.csv");
  export_model({.run = folder_ / "run", .output = folder_ / "export"});
  PredictOptions options = request("a.csv");
  options.model = folder_ / "export";
  options.data = folder_ / "dataset";
  EXPECT_EQ(floats(scored(options)["score"]), evaluated());

  std::filesystem::rename(folder_ / "run", folder_ / "elsewhere");
  std::filesystem::rename(folder_ / "dataset", folder_ / "nowhere");
  options.output = folder_ / "b.csv";
  EXPECT_THAT(message([&] { predict(options); }), HasSubstr("dataset"));
  options.data.clear();
  EXPECT_THAT(message([&] { predict(options); }), HasSubstr("an export has no events"));
  options.events = folder_ / "events.csv";
  options.columns.rename({"user=user"});
  EXPECT_THAT(message([&] { predict(options); }), HasSubstr("events.csv: there is no column \"user\""));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b.csv.events.partial"));
  // Times in ms: the requests' too.
  std::string text = "uid,item,ms\n";
  Columns anchors = read(folder_ / "requests.csv");
  for (std::size_t i = 0; i < anchors["user"].size(); ++i)
    text += fmt::format("{},{},{}000\n", anchors["user"][i], anchors["item"][i], anchors["time"][i]);
  write_file(options.requests, text);
  options.columns.rename({"user=uid", "time=ms"});
  options.columns.time_step = TimeStep::milliseconds;
  EXPECT_EQ(floats(scored(options)["score"]), evaluated());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b.csv.events.partial"));
}

TEST_F(Predict, AHistoryEndsBeforeTheTimeOfTheRequest) {
  train_and_evaluate();
  const Dataset dataset(folder_ / "dataset");
  const std::int64_t user = dataset.user_ids()[3], last = dataset.events_of(3).last_range().end - 1;
  const std::int64_t begin = dataset.events_of(3).last_range().begin;
  const auto range = [&](std::int64_t time) {
    const PositionRange events = dataset.events_before_time(user, time).last_range();
    return std::pair(events.begin, events.end);
  };
  EXPECT_EQ(range(dataset.time()[last]), std::pair(begin, last));
  EXPECT_EQ(range(dataset.time()[last] + 1), std::pair(begin, last + 1));
  EXPECT_EQ(range(dataset.time()[begin]), std::pair(begin, begin));
  EXPECT_TRUE(dataset.events_before_time(1'000'000, 5).empty());
}

TEST_F(Predict, ListsKeepTheirOrderAndTopSortsThem) {
  train_and_evaluate();
  write_file(folder_ / "requests.csv",
             "request,user,time,candidates\n\"a,b\",3,20000,\"[5, 1, 9]\"\nsecond,4,20000,1 7\n");
  Columns all = scored(request("all.csv"));
  EXPECT_THAT(all["request"], ElementsAre("a,b", "a,b", "a,b", "second", "second"));
  EXPECT_THAT(all["item"], ElementsAre("5", "1", "9", "1", "7"));
  PredictOptions options = request("top.csv");
  options.top = 2;
  options.batch_size = 2;  // a list in several batches
  Columns top = scored(options);
  EXPECT_THAT(top["rank"], ElementsAre("1", "2", "1", "2"));
  std::vector<float> first = floats(all["score"]);
  first.resize(3);
  std::sort(first.rbegin(), first.rend());
  EXPECT_EQ(floats(top["score"])[0], first[0]);
  EXPECT_EQ(floats(top["score"])[1], first[1]);
  EXPECT_EQ(last_.scores, 5);
}

TEST_F(Predict, ACatalogueIsScoredForEveryRequest) {
  train_and_evaluate();
  write_file(folder_ / "requests.csv", "user,time\n3,20000\n4,20000\n");
  write_file(folder_ / "items.csv", "item\n4\n2\n11\n");
  PredictOptions options = request("a.csv");
  EXPECT_THAT(message([&] { predict(options); }), HasSubstr("expected a column \"item\""));
  options.catalogue = folder_ / "items.csv";
  EXPECT_THAT(scored(options)["item"], ElementsAre("4", "2", "11", "4", "2", "11"));
  options.output = folder_ / "b.csv";
  options.trained_items = true;
  EXPECT_THAT(message([&] { predict(options); }), HasSubstr("--trained-items"));
  options.catalogue.clear();
  options.top = 100;  // more than there are
  EXPECT_EQ(scored(options)["item"].size(), 24u);
  EXPECT_EQ(last_.untrained_items, 0);
  write_file(folder_ / "items.csv", "item\n4\n4\n");
  options.output = folder_ / "c.csv";
  options.trained_items = false;
  options.catalogue = folder_ / "items.csv";
  EXPECT_THAT(message([&] { predict(options); }),
              HasSubstr("items.csv line 3: column item: the item 4 occurs"));
}

TEST_F(Predict, UnknownIdsAreScoredAndCounted) {
  options_.features.item_rows = 20;
  train_and_evaluate();
  write_file(folder_ / "requests.csv",
             "user,time,item\n3,20000,1\n999,20000,1\n3,20000,15\n3,20000,-7\n3,0,1\n");
  scored(request("a.csv"));
  EXPECT_EQ(last_.scores, 5);
  EXPECT_EQ(last_.without_history, 2);  // an unknown user, and one before its first event
  EXPECT_EQ(last_.untrained_items, 2);
  EXPECT_EQ(last_.bad_ids.at("item"), 1);
  EXPECT_EQ(last_.bad_ids.at("user"), 1);
}

TEST_F(Predict, ABadRowLeavesNoOutput) {
  train_and_evaluate();
  write_file(folder_ / "requests.csv", "user,time,item\n3,20000,1\n3,soon,1\n");
  EXPECT_THAT(message([&] { predict(request("a.csv")); }),
              HasSubstr("requests.csv line 3: column time: expected a time, a whole number of at most 64 "
                        "bits or ISO 8601 such as 2024-05-01T12:30:00Z, found \"soon\""));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.csv"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.csv.partial"));
  write_file(folder_ / "requests.csv", "user,time,candidates\n3,20000,1 x\n");
  EXPECT_THAT(message([&] { predict(request("a.csv")); }),
              HasSubstr("line 2: column candidates: expected whole"));
  write_file(folder_ / "requests.csv", "user,time,candidates\n3,20000,[]\n");
  EXPECT_THAT(message([&] { predict(request("a.csv")); }), HasSubstr("the list has no candidates"));
  write_file(folder_ / "a.csv", "");
  EXPECT_THAT(message([&] { predict(request("a.csv")); }), HasSubstr("already exists"));
}

TEST_F(Predict, AStopLeavesNoOutput) {
  train_and_evaluate();
  write_file(folder_ / "requests.csv", "user,time,item\n3,20000,1\n");
  const std::atomic<bool> stop = true;
  PredictOptions options = request("a.csv");
  options.stop = &stop;
  EXPECT_THROW(predict(options), Stopped);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.csv"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.csv.partial"));
}

TEST_F(Predict, AContextColumnOfAFeatureIsAColumnOfTheRequests) {
  Manifest description;
  description.name = "small";
  description.actions = {{"positive", 1}};
  description.label = "positive";
  description.pools = {"positive"};
  description.context = {"unused", "hour_of_user"};
  EventTable table;
  std::vector<std::int64_t> user, item, time, context;
  for (std::int64_t n = 0; n < 300; ++n) {
    user.push_back(n % 20);
    item.push_back(n * 7 % 11);
    time.push_back(100 * n);
    context.push_back(n % 24);
    table.action.push_back(static_cast<std::uint8_t>((n % 3 == 0 ? 1 : 0) | kRankableBit));
  }
  table.user.append(user);
  table.item.append(item);
  table.time.append(time);
  table.context.resize(2);
  for (IntegerColumn& column : table.context) column.append(context);
  std::filesystem::create_directories(folder_ / "other");
  write_dataset(folder_ / "other", description, table);
  options_.data.path = folder_ / "other";
  options_.features.context = {{"hour", {"hour_of_user"}, 0, false},
                               {"cross", {"item", "hour_of_user"}, 50, true}};
  train_and_evaluate();
  write_anchors(folder_ / "requests.csv");
  EXPECT_THAT(message([&] { predict(request("a.csv")); }),
              HasSubstr("requests.csv: there is no column \"hour_of_user\""));
  Columns anchors = read(folder_ / "requests.csv");
  std::string text = "hour_of_user,user,time,item\n";
  for (std::size_t i = 0; i < anchors["user"].size(); ++i) {
    text += fmt::format("{},{},{},{}\n", parse_number<std::int64_t>(anchors["time"][i]).value() / 100 % 24,
                        anchors["user"][i], anchors["time"][i], anchors["item"][i]);
  }
  write_file(folder_ / "requests.csv", text);
  EXPECT_EQ(floats(scored(request("a.csv"))["score"]), evaluated());
}

TEST_F(Predict, ParquetGoesThroughThePreparingProgram) {
  if (!std::filesystem::exists(Path(HSTU_PROGRAM_DIR) / "hstu-prepare"))
    GTEST_SKIP() << "no hstu-prepare here";
  train_and_evaluate();
  write_file(folder_ / "requests.csv",
             "request,user,time,candidates\n\"a,\"\"b\",3,20000,5 1 9\nsecond,4,20000,1 7\n");
  const auto prepare = [](const std::string& words) {
    const CommandResult result = run_command(HSTU_PROGRAM_DIR "/hstu-prepare " + words);
    EXPECT_EQ(result.exit_status, 0) << result.text;
    return result.text;
  };
  prepare(
      fmt::format("from-csv {0}/requests.parquet --integers user,time <{0}/requests.csv", folder_.string()));
  EXPECT_EQ(prepare(fmt::format("to-csv {}/requests.parquet", folder_.string())),
            read_file(folder_ / "requests.csv"));
  predict(request("want.csv"));
  PredictOptions options = request("scores.parquet");
  options.requests = folder_ / "requests.parquet";
  predict(options);
  EXPECT_EQ(prepare(fmt::format("to-csv {}", options.output.string())), read_file(folder_ / "want.csv"));
  write_file(options.requests, "PAR1 but no Parquet");
  options.output = folder_ / "again.parquet";
  EXPECT_NE(message([&] { predict(options); }), "");
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

// examples/score_numpy.py computes the same from an export.
TEST_F(Predict, NumpyReproducesTheScoresOfAnExport) {
  const std::string python = testing::python_with_numpy();
  if (python.empty()) GTEST_SKIP() << "no python3 with numpy and tomllib (3.11) here";
  options_.features.context = {{"user", {"user"}, 0, false},
                               {"cross", {"user", "item", "hour", "weekday", "item"}, 40, true}};
  options_.data.options.strategy = HistoryStrategy::interleaved;
  options_.features.item_rows = 40;
  dlrmv4_of(options_).layers = 2;
  dlrmv4_of(options_).heads = 2;
  dlrmv4_of(options_).query_time = QueryTime::last_event;
  train_and_evaluate();
  write_anchors(folder_ / "requests.csv");
  write_file(folder_ / "requests.csv", read_file(folder_ / "requests.csv") + "3,33,20000\n999,1,5\n3,77,9\n");
  const Dataset dataset(folder_ / "dataset");
  std::string text = "user,item,time,action\n";
  for (std::int64_t p = 0; p < dataset.events(); ++p) {
    text += fmt::format("{},{},{},{}\n", dataset.user_ids()[static_cast<std::size_t>(dataset.user_at(p))],
                        dataset.item()[p], dataset.time()[p],
                        dataset.action()[static_cast<std::size_t>(p)] & ~kRankableBit);
  }
  write_file(folder_ / "events.csv", text);
  export_model({.run = folder_ / "run", .output = folder_ / "export"});
  PredictOptions options = request("hstu.csv");
  options.model = folder_ / "export";
  options.events = folder_ / "events.csv";
  const std::vector<float> scores = floats(scored(options)["score"]);
  const CommandResult result =
      run_command(fmt::format("{2} -B {0}/examples/score_numpy.py {1}/export --events {1}/events.csv "
                              "--requests {1}/requests.csv >{1}/numpy.csv",
                              HSTU_SOURCE_DIR, folder_.string(), python));
  ASSERT_EQ(result.exit_status, 0) << result.text;
  const std::vector<float> expected = floats(read(folder_ / "numpy.csv")["score"]);
  ASSERT_EQ(scores.size(), expected.size());
  for (std::size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], expected[i], 1e-6) << i;
}

}  // namespace
}  // namespace hstu
