// Items of the whole catalogue for users, and the exported vectors, against the ranks of an evaluation.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "hstu/dataset/names_writer.h"
#include "hstu/dataset/writer.h"
#include "hstu/predict/ann_recall.h"
#include "hstu/predict/export.h"
#include "hstu/predict/export_vectors.h"
#include "hstu/score/request_scorer.h"
#include "hstu/training/catalogue_baselines.h"
#include "predict/predict_fixture.h"
#include "support/kind_options.h"

namespace hstu::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kWalkUsers = 40, kWalkItems = 23;

std::int64_t walk_item(std::int64_t number) {
  return (number << 30) + 5;
}

// Users that go from item to item, some of which come back; no labels. Users are of two countries.
void write_item_walks(const Path& folder) {
  Manifest description;
  description.name = "walks";
  description.actions = {{"event", 1}, {"click", 2}};
  description.label = "event";
  description.pools = {"event"};
  description.context = {"unread", "country"};
  EventTable table;
  std::vector<std::int64_t> user, item, time, unread, country;
  RandomStream random{11};
  for (std::int64_t u = 0; u < kWalkUsers; ++u) {
    auto at = static_cast<std::int64_t>(random.below(kWalkItems));
    for (std::int64_t n = 0; n < 5 + u % 7; ++n) {
      user.push_back(100 + u);
      item.push_back(walk_item(at));
      time.push_back(1'600'000'000 + 3600 * n + u);
      table.action.push_back(1 | kRankableBit);
      unread.push_back(n);
      country.push_back(5 + u % 2);
      at = random.uniform() < 0.8 ? (3 * at + 1) % kWalkItems
                                  : static_cast<std::int64_t>(random.below(kWalkItems));
    }
  }
  table.user.append(user);
  table.item.append(item);
  table.time.append(time);
  table.context.resize(2);
  table.context[0].append(unread);
  table.context[1].append(country);
  std::filesystem::create_directories(folder);
  DatasetWriter writer(folder, description);
  writer.append(ordered(table));
  writer.finish({}, {}, {}, [&](Manifest& manifest) {
    write_code_names(folder, "context_country", std::vector<std::string>{"be", "ch", "fi", "it", "fr", "nl"},
                     manifest);
  });
}

class FindItems : public Predict {
 protected:
  explicit FindItems(const std::vector<ContextualFeature>& contexts = {}) {
    write_item_walks(folder_ / "walks");
    options_.data.path = folder_ / "walks";
    options_.data.options.window_seconds = 0;
    options_.data.options.anchor_stride = 0;
    options_.data.options.min_history = 1;
    options_.features.context = contexts;
    RetrievalConfig& model = retrieval_of(options_);
    model.embedding_dim = 20;  // products of vectors have an edge
    model.heads = 2;
    model.exclude_seen = SeenItems::none;
    options_.training = {.batch_size = 16, .epochs = 2};
    options_.evaluation = {};
    options_.evaluation.holdout.split = LastSplit::paper;
    options_.checkpoint = {.every_seconds = 0};
    run("run");
  }
  PredictOptions users(const std::string& text, const std::string& output, std::int64_t top) const {
    write_file(folder_ / "users.csv", text);
    return {.model = folder_ / "run", .output = folder_ / output, .users = folder_ / "users.csv", .top = top};
  }
  static std::string all_users() {
    std::string text = "user\n";
    for (std::int64_t u = 0; u < kWalkUsers; ++u) text += fmt::format("{}\n", 100 + u);
    return text;
  }
  std::string refused(const PredictOptions& options) const {
    return message_of<UsageError>([&] { predict(options); });
  }
  void expect_targets_at_their_ranks();
};

void FindItems::expect_targets_at_their_ranks() {
  const RunFolder folder = open_run_folder(folder_ / "run");
  Experiment experiment(read_run_options(folder));
  load_run(Checkpoint(find_checkpoint(folder.checkpoints(), -1)), experiment);
  Evaluator evaluator(experiment);
  const EvaluationResult result = *evaluator.run();
  evaluator.write_predictions(folder_ / "scores");
  const NpyColumn<std::int64_t> user(folder_ / "scores/user.npy"), time(folder_ / "scores/time.npy"),
      target(folder_ / "scores/target.npy"), rank(folder_ / "scores/rank.npy");
  ASSERT_EQ(rank.size(), kWalkUsers);
  std::string text = "time,user\n";
  for (std::int64_t i = 0; i < user.size(); ++i) text += fmt::format("{},{}\n", time[i], user[i]);
  const Columns found = scored(users(text, "top.csv", kWalkItems));
  const std::size_t items = experiment.learner().catalogues.front()->size();
  ASSERT_EQ(found.at("item").size(), static_cast<std::size_t>(kWalkUsers) * items);
  double reciprocal = 0;
  for (std::int64_t i = 0; i < rank.size(); ++i) {
    const std::size_t row = static_cast<std::size_t>(i) * items + static_cast<std::size_t>(rank[i] - 1);
    EXPECT_EQ(found.at("item")[row], std::to_string(target[i]));
    EXPECT_EQ(found.at("rank")[row], std::to_string(rank[i]));
    reciprocal += 1 / static_cast<double>(rank[i]);
  }
  EXPECT_NEAR(*result.find("mrr"), reciprocal / static_cast<double>(kWalkUsers), 1e-12);
}

TEST_F(FindItems, TheTargetOfAnEvaluationIsAtItsRank) {
  expect_targets_at_their_ranks();
}

class FindItemsByContext : public FindItems {
 protected:
  FindItemsByContext() : FindItems({{"user", {"user"}, 0, false}, {"of_country", {"country"}, 0, false}}) {}
};

// Contexts come from the events of the users, of the dataset as of a table of events.
TEST_F(FindItemsByContext, TheTargetOfAnEvaluationIsAtItsRank) {
  expect_targets_at_their_ranks();
}

TEST_F(FindItemsByContext, ATableOfEventsHasThem) {
  const Dataset dataset(folder_ / "walks");
  const auto table_with = [&](const char* name, const std::string& country) {
    std::string text = "user,item,time,action,country\n";
    for (std::int64_t u = 0; u < 4; ++u)
      dataset.events_of(u).each([&](std::int64_t p) {
        const std::string of_user = dataset.context("country")[p] == 5 ? "fr" : "nl";
        text += fmt::format("{},{},{},event,{}\n", 100 + u, dataset.item()[p], dataset.time()[p],
                            country.empty() ? of_user : country);
      });
    write_file(folder_ / name, text);
    PredictOptions options = users("user\n100\n101\n102\n103\n", std::string(name) + ".top", kWalkItems);
    options.events = folder_ / name;
    return scored(options);
  };
  const Columns expected = scored(users("user\n100\n101\n102\n103\n", "top.csv", kWalkItems));
  const Columns same = table_with("same.csv", ""), other = table_with("other.csv", "fr");
  EXPECT_EQ(same.at("item"), expected.at("item"));
  EXPECT_EQ(same.at("score"), expected.at("score"));
  EXPECT_NE(other.at("score"), expected.at("score")) << "users 101 and 103 are of another country";
  EXPECT_NE(table_with("unknown.csv", "xx").at("score"), other.at("score")) << "a text without a code is 0";
  PredictOptions without = users("user\n100\n", "without.csv", 3);
  write_file(folder_ / "without_country.csv", "user,item,time,action\n100,5,1600000000,event\n");
  without.events = folder_ / "without_country.csv";
  EXPECT_THAT(message_of([&] { predict(without); }), HasSubstr("country"));
}

// From memory: an export, and the events of user 101 with their columns; with kept keys too.
TEST_F(FindItemsByContext, RequestsBringThemWithTheirEvents) {
  const std::vector<float> expected = floats(scored(users("user\n101\n", "top.csv", 5)).at("score"));
  export_model({.run = folder_ / "run", .output = folder_ / "export"});
  const Dataset dataset(folder_ / "walks");
  ScoreRequest request{.asked = Asked::top, .user = 101, .top = 5};
  RequestEvents& events = request.events.emplace();
  events.context.resize(2);
  dataset.events_of(1).each([&](std::int64_t p) {
    events.item.push_back(dataset.item()[p]);
    events.time.push_back(dataset.time()[p]);
    events.action.push_back(1);
    events.context[1].push_back(6);
  });
  ScoreRequest other = request, without = request;
  std::ranges::fill(other.events->context[1], 5);
  without.events->context.clear();
  for (const std::int64_t cache : {0, 1 << 20}) {
    RequestScorer scorer({.model = folder_ / "export", .device = "host", .cache_bytes = cache});
    const auto scores = [&](const ScoreRequest& r) {
      scorer.check(r);
      const ScoreRequest* const one = &r;
      return scorer.answer({&one, 1}).front().scores;
    };
    EXPECT_EQ(scores(request), expected);
    EXPECT_NE(scores(other), expected);
    EXPECT_EQ(scores(request), expected) << "keys of another country are not taken";
    EXPECT_THAT(message_of<UsageError>([&] { scorer.check(without); }), HasSubstr("country"));
  }
}

TEST_F(FindItems, SeenItemsAreLeftOutAndUsersWithoutEventsHaveNoRows) {
  PredictOptions options = users("user,request\n100,a\n999,b\n103,c\n", "top.csv", 4);
  options.exclude_seen = true;
  const Columns found = scored(options);
  EXPECT_EQ(found.at("request"), (std::vector<std::string>{"a", "a", "a", "a", "c", "c", "c", "c"}));
  EXPECT_EQ(last_.requests, 3);
  EXPECT_EQ(last_.without_history, 1);
  const Dataset dataset(folder_ / "walks");
  std::size_t row = 0;
  for (const std::int64_t u : {0, 3}) {
    dataset.events_of(u).each([&](std::int64_t p) {
      for (std::size_t r = row; r < row + 4; ++r)
        EXPECT_NE(found.at("item")[r], std::to_string(dataset.item()[p]));
    });
    row += 4;
  }
  options.seen_actions = {"click"};  // of which there is no event
  options.output = folder_ / "none_seen.csv";
  scored(options);
  EXPECT_EQ(last_.excluded, 0);
}

// A dataset with further items, of which the model has no rows.
TEST_F(FindItems, ItemsThatTheModelDoesNotHaveAreCountedAndNotFound) {
  const std::int64_t unknown = walk_item(kWalkItems + 5);
  write_file(folder_ / "events.csv", fmt::format("user,item,time,action\n100,{},1600000000,event\n"
                                                 "100,{},1600000001,event\n",
                                                 walk_item(3), unknown));
  PredictOptions options = users("user\n100\n", "top.csv", kWalkItems + 9);
  options.events = folder_ / "events.csv";
  const Columns found = scored(options);
  EXPECT_FALSE(found.at("item").empty());
  for (const std::string& item : found.at("item")) EXPECT_NE(item, std::to_string(unknown));
  EXPECT_EQ(last_.bad_ids, (std::map<std::string, std::int64_t>{{"item", 1}}));
}

TEST_F(FindItems, TheListDoesNotDependOnTheBatch) {
  PredictOptions one = users(all_users(), "one.csv", 7);
  one.batch_size = 1;
  PredictOptions all = one;
  all.output = folder_ / "all.csv";
  all.batch_size = 1000;
  EXPECT_EQ(scored(one).at("item"), scored(all).at("item"));
}

// R-26 of the specification: the products of exported vectors, summed in the order of predict.
TEST_F(FindItems, ExportedVectorsGiveTheSameLists) {
  const Columns found = scored(users(all_users(), "top.csv", 10));
  const Json manifest = export_vectors({.run = folder_ / "run", .output = folder_ / "vectors"});
  EXPECT_EQ(manifest.at("users"), kWalkUsers);
  EXPECT_EQ(manifest.at("dim"), 20);
  EXPECT_EQ(manifest.at("normalised"), true);
  const auto floats_of = [&](const char* name) {
    const MappedFile file(folder_ / "vectors" / name);
    const NpyHeader header = parse_npy_header(file.bytes(), name);
    EXPECT_EQ(header.shape.at(1), 20);
    const auto* const begin = reinterpret_cast<const float*>(file.bytes().data() + header.data_offset);
    return std::vector<float>(begin, begin + header.count());
  };
  const std::vector<float> items = floats_of("items.f32.npy"), of_users = floats_of("users.f32.npy");
  const NpyColumn<std::int64_t> ids(folder_ / "vectors/ids.i64.npy"),
      users(folder_ / "vectors/user_ids.i64.npy");
  ASSERT_EQ(users.size(), kWalkUsers);
  std::size_t row = 0;
  for (std::size_t u = 0; u < static_cast<std::size_t>(kWalkUsers); ++u) {
    std::vector<std::pair<float, std::int64_t>> order;
    for (std::size_t i = 0; i < static_cast<std::size_t>(ids.size()); ++i) {
      float score = 0;
      for (std::size_t e = 0; e < 20; ++e) score = std::fma(of_users[u * 20 + e], items[i * 20 + e], score);
      order.emplace_back(-score, ids[static_cast<std::int64_t>(i)]);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t r = 0; r < 10; ++r, ++row) {
      ASSERT_EQ(found.at("user")[row], std::to_string(users[static_cast<std::int64_t>(u)]));
      EXPECT_EQ(found.at("item")[row], std::to_string(order[r].second)) << u << " " << r;
      EXPECT_EQ(found.at("score")[row], fmt::format("{}", -order[r].first));
    }
  }
  for (const char* const table : {"items.parquet", "users.parquet"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / "vectors" / table)) << table;
}

// examples/top_numpy.py
TEST_F(FindItems, NumpyFindsTheSameListsInTheExportedVectors) {
  const std::string python = python_with_numpy();
  if (python.empty()) GTEST_SKIP() << "no python3 with numpy and tomllib (3.11) here";
  const Columns found = scored(users(all_users(), "top.csv", 10));
  export_vectors({.run = folder_ / "run", .output = folder_ / "vectors"});
  const CommandResult result = run_command(
      fmt::format("{2} -B {0}/examples/top_numpy.py {1}/vectors --top 10 --batch 7 >{1}/numpy.csv",
                  HSTU_SOURCE_DIR, folder_.string(), python));
  ASSERT_EQ(result.exit_status, 0) << result.text;
  const Columns by_numpy = read(folder_ / "numpy.csv");
  for (const char* const column : {"user", "item", "rank"}) EXPECT_EQ(by_numpy.at(column), found.at(column));
  const AnnRecall recall = ann_recall({.answers = folder_ / "numpy.csv", .exact = folder_ / "top.csv"});
  EXPECT_EQ(recall.recall, (std::vector<double>{1, 1}));  // of 1 and 10
}

TEST_F(FindItems, SaysWhichWordsDoNotFit) {
  PredictOptions options = users(all_users(), "top.csv", 0);
  EXPECT_THAT(refused(options), HasSubstr("--users needs --top"));
  options.top = 3;
  options.trained_items = true;
  EXPECT_THAT(refused(options), HasSubstr("leave --requests"));
  options.trained_items = false;
  options.by = "event";
  EXPECT_THAT(refused(options), HasSubstr("--by"));
  PredictOptions requests = options;
  requests.users.clear();
  EXPECT_THAT(refused(requests), HasSubstr("--requests or --users"));
  requests.requests = options.users;
  EXPECT_THAT(refused(requests), HasSubstr("scores no single candidates: name users by --users"));
}

TEST(BetterBaselines, AreNamedWithTheirValues) {
  constexpr MetricSpec kSpecs[] = {{.name = "ndcg@10", .title = "NDCG@10"}};
  EvaluationResult result;
  result.model.add("ndcg@10", 0.25);
  result.item_baselines["markov"].add("ndcg@10", 0.5);
  result.item_baselines["popularity"].add("ndcg@10", 0.125);
  EXPECT_THAT(better_baselines(result, kSpecs),
              HasSubstr("NDCG@10 of 0.2500 is worse than that of markov (0.5000),"));
  result.item_baselines["markov"] = result.model;
  EXPECT_EQ(better_baselines(result, kSpecs), "");  // equal is not worse
  result.baseline.add("ndcg@10", 0.75);
  EXPECT_EQ(better_baselines(result, kSpecs), "") << "the one by name is of this kind";
  result.item_baselines.clear();
  EXPECT_THAT(better_baselines(result, kSpecs), HasSubstr("worse than that of the baseline (0.7500),"));
}

}  // namespace
}  // namespace hstu::testing
