// The functions of include/hstu/score.h against hstu predict.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "hstu/score.h"
#include "score/score_fixture.h"

namespace hstu::testing {
namespace {

using ::testing::HasSubstr;

// A request and the memory that it refers to.
struct RequestInC {
  RequestEvents events;
  std::vector<std::int64_t> columns, contexts, items;

  hstu_score_request get(std::int64_t user, std::int64_t time) {
    hstu_score_request r;
    hstu_score_request_init(&r);
    r.user = user, r.time = time;
    columns.clear();
    for (const auto& column : events.context) columns.insert(columns.end(), column.begin(), column.end());
    r.event_items = events.item.data(), r.event_times = events.time.data();
    r.event_actions = events.action.data(), r.event_contexts = columns.data();
    r.events = std::ssize(events.item);
    if (!contexts.empty()) r.contexts = contexts.data();
    r.items = items.data(), r.item_count = std::ssize(items);
    return r;
  }
};

class ScoreInC : public Score {
 protected:
  ~ScoreInC() override { hstu_score_close(scorer_); }

  hstu_score_status open_in_c(const std::string& model, const std::string& data = "",
                              std::int64_t cache_bytes = 1 << 20, std::int64_t cache_behind = 0) {
    hstu_score_close(scorer_);
    hstu_score_options options;
    hstu_score_options_init(&options);
    options.model = model.c_str();
    if (!data.empty()) options.data = data.c_str();
    options.cache_bytes = cache_bytes, options.cache_behind = cache_behind;
    options.device = "host";
    return hstu_score_open(&options, &scorer_);
  }

  hstu_scorer* scorer_ = nullptr;
};

TEST_F(ScoreInC, HasTheBytesOfPredict) {
  use_ranking(200, {"positive", "negative"});
  train_and_export();
  ASSERT_EQ(open_in_c(folder_ / "export"), HSTU_SCORE_OK) << hstu_score_error();
  ASSERT_EQ(hstu_score_tasks(scorer_), 2);
  EXPECT_STREQ(hstu_score_task(scorer_, 1), "negative");
  std::string text = "user,time,candidates\n";
  const std::int64_t times[] = {500, 9'000, 21'500, 100'000};
  std::vector<RequestInC> memory;
  std::vector<hstu_score_request> requests;
  for (std::int64_t u = 0; u < 4; ++u) {
    memory.push_back({.events = events_of(u), .columns = {}, .contexts = {}, .items = {3, 11, u}});
    text += fmt::format("{},{},3 11 {}\n", id_of_user(u), times[u], u);
  }
  for (std::int64_t u = 0; u < 4; ++u)
    requests.push_back(memory[static_cast<std::size_t>(u)].get(id_of_user(u), times[u]));
  std::vector<float> scores(4 * 3 * 2);
  ASSERT_EQ(hstu_score(scorer_, requests.data(), 4, scores.data()), HSTU_SCORE_OK) << hstu_score_error();
  write_file(folder_ / "requests.csv", text);
  const Columns expected = scored(request("scores.csv"));
  const std::vector<float> first = floats(expected.at("score_positive")),
                           second = floats(expected.at("score_negative"));
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(scores[2 * i], first[i]);
    EXPECT_EQ(scores[2 * i + 1], second[i]);
  }

  // One by one from several threads, twice: the second time from the cache.
  std::vector<float> again(scores.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 2; ++n) hstu_score(scorer_, &requests[i], 1, again.data() + 6 * i);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(again, scores);
}

TEST_F(ScoreInC, TakesNoScorerAndNoOptions) {
  hstu_score_options_init(nullptr);
  hstu_score_request_init(nullptr);
  hstu_score_close(nullptr);
  EXPECT_EQ(hstu_score_tasks(nullptr), 0);
  EXPECT_EQ(hstu_score_task(nullptr, 0), nullptr);
  EXPECT_EQ(hstu_score_width(nullptr), 0);
  EXPECT_EQ(hstu_score_columns(nullptr), 0);
  EXPECT_EQ(hstu_score_column(nullptr, 0), nullptr);
  EXPECT_EQ(hstu_score_model(nullptr), nullptr);
  EXPECT_EQ(hstu_score(nullptr, nullptr, 0, nullptr), HSTU_SCORE_BAD_REQUEST);
  EXPECT_EQ(hstu_score_top(nullptr, nullptr, 0, 1, 0, nullptr, nullptr, nullptr), HSTU_SCORE_BAD_REQUEST);
  EXPECT_EQ(hstu_score_vectors(nullptr, nullptr, 0, nullptr, nullptr), HSTU_SCORE_BAD_REQUEST);
  EXPECT_EQ(hstu_score_open(nullptr, nullptr), HSTU_SCORE_BAD_MODEL);
}

TEST_F(ScoreInC, RefusesNumbersOutOfTheirRange) {
  train_and_export();
  const std::string model = folder_ / "export";
  const auto refusal = [&](const auto& change) {
    hstu_score_options options;
    hstu_score_options_init(&options);
    options.model = model.c_str();
    options.device = "host";
    change(options);
    hstu_scorer* scorer = nullptr;
    EXPECT_EQ(hstu_score_open(&options, &scorer), HSTU_SCORE_BAD_MODEL);
    EXPECT_EQ(scorer, nullptr);
    return std::string(hstu_score_error());
  };
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  using Options = hstu_score_options;
  EXPECT_THAT(refusal([](Options& o) { o.threads = 2147483647; }),
              HasSubstr("options.threads: expected 0 to 4096"));
  EXPECT_THAT(refusal([](Options& o) { o.threads = -1; }), HasSubstr("options.threads"));
  EXPECT_THAT(refusal([](Options& o) { o.cache_bytes = kMost; }), HasSubstr("options.cache_bytes"));
  EXPECT_THAT(refusal([](Options& o) { o.cache_behind = -1; }), HasSubstr("options.cache_behind"));
  EXPECT_THAT(refusal([](Options& o) { o.batch_size = kMost; }), HasSubstr("options.batch_size"));
  EXPECT_THAT(refusal([](Options& o) { o.most_requests = 0; }), HasSubstr("options.most_requests"));

  ASSERT_EQ(open_in_c(model), HSTU_SCORE_OK) << hstu_score_error();
  RequestInC memory{.events = events_of(1), .columns = {}, .contexts = {}, .items = {3}};
  hstu_score_request request = memory.get(1, 25'500);
  float score = 0;
  std::int64_t item = 0, found = 0;
  const auto top = [&](std::int64_t k, std::int32_t exclude_seen) {
    const hstu_score_status status =
        hstu_score_top(scorer_, &request, 1, k, exclude_seen, &item, &score, &found);
    return status == HSTU_SCORE_OK ? std::string() : std::string(hstu_score_error());
  };
  EXPECT_EQ(top(1, 1), "");
  for (const std::int32_t wrong : {-1, 2, 257, HSTU_SCORE_SEEN_BY(0x100)})
    EXPECT_THAT(top(1, wrong), HasSubstr("exclude_seen")) << wrong;
  EXPECT_THAT(top(kMost, 0), HasSubstr("k: expected at most"));
  request.events = -2;
  EXPECT_EQ(hstu_score(scorer_, &request, 1, &score), HSTU_SCORE_BAD_REQUEST);
  EXPECT_THAT(hstu_score_error(), HasSubstr("events: expected a number of events, or -1"));
  for (const std::int64_t wrong : {std::int64_t{-1}, kMost}) {
    request = memory.get(1, 25'500);
    request.item_count = wrong;
    EXPECT_EQ(hstu_score(scorer_, &request, 1, &score), HSTU_SCORE_BAD_REQUEST) << wrong;
    EXPECT_EQ(hstu_score(scorer_, &request, wrong, &score), HSTU_SCORE_BAD_REQUEST) << wrong;
  }
}

TEST_F(ScoreInC, FindsTheItemsOfPredict) {
  use_retrieval(SequencePreset::meta);
  options_.features.context = {{"user", {"user"}, 0, false}};
  train_and_export();
  const std::string dataset = folder_ / "dataset";
  ASSERT_EQ(open_in_c(folder_ / "export", dataset), HSTU_SCORE_OK) << hstu_score_error();
  constexpr std::int64_t kUsers = 5, kTop = 4;
  std::string text = "user\n";
  std::vector<hstu_score_request> requests(kUsers);
  for (std::int64_t u = 0; u < kUsers; ++u) {
    hstu_score_request& r = requests[static_cast<std::size_t>(u)];
    hstu_score_request_init(&r);
    r.user = id_of_user(u);
    text += fmt::format("{}\n", r.user);
  }
  std::vector<std::int64_t> items(kUsers * kTop), found(kUsers);
  std::vector<float> scores(kUsers * kTop);
  write_file(folder_ / "users.csv", text);
  using Actions = std::vector<std::string>;
  for (const auto& [exclude_seen, actions] :
       {std::pair{1, Actions()}, {HSTU_SCORE_SEEN_BY(2), Actions{"negative"}}}) {
    ASSERT_EQ(hstu_score_top(scorer_, requests.data(), kUsers, kTop, exclude_seen, items.data(),
                             scores.data(), found.data()),
              HSTU_SCORE_OK)
        << hstu_score_error();
    const Columns expected = scored({.model = folder_ / "run",
                                     .output = folder_ / fmt::format("top_{}.csv", exclude_seen),
                                     .users = folder_ / "users.csv",
                                     .top = kTop,
                                     .exclude_seen = true,
                                     .seen_actions = actions});
    std::vector<std::string> ids;
    std::vector<float> kept;
    for (std::size_t u = 0; u < kUsers; ++u)
      for (std::int64_t r = 0; r < found[u]; ++r) {
        ids.push_back(std::to_string(items[u * kTop + static_cast<std::size_t>(r)]));
        kept.push_back(scores[u * kTop + static_cast<std::size_t>(r)]);
      }
    EXPECT_FALSE(ids.empty());
    EXPECT_EQ(ids, expected.at("item"));
    EXPECT_EQ(kept, floats(expected.at("score")));
  }
  EXPECT_EQ(hstu_score_top(scorer_, requests.data(), kUsers, kTop, HSTU_SCORE_SEEN_BY(4), items.data(),
                           scores.data(), found.data()),
            HSTU_SCORE_BAD_REQUEST);
  EXPECT_THAT(hstu_score_error(), HasSubstr("exclude_seen: expected a sum of bits of 3, found 4"));

  std::vector<float> vectors(kUsers * 8);
  ASSERT_EQ(hstu_score_vectors(scorer_, requests.data(), kUsers, vectors.data(), found.data()),
            HSTU_SCORE_OK);
  EXPECT_EQ(found, std::vector<std::int64_t>(kUsers, 1));
  EXPECT_EQ(hstu_score(scorer_, requests.data(), 1, scores.data()), HSTU_SCORE_BAD_REQUEST);
  EXPECT_THAT(hstu_score_error(), HasSubstr("finds items"));
}

TEST_F(ScoreInC, SaysWhatIsWrong) {
  train_and_export();
  EXPECT_EQ(open_in_c(folder_ / "nothing"), HSTU_SCORE_BAD_MODEL);
  EXPECT_EQ(scorer_, nullptr);
  EXPECT_THAT(hstu_score_error(), HasSubstr("nothing"));
  const Path manifest = folder_ / "export/manifest.json";
  const std::string written = read_file(manifest);
  Json later = Json::parse(written);
  later["version"] = 99;
  write_file(manifest, later.dump());
  EXPECT_EQ(open_in_c(folder_ / "export"), HSTU_SCORE_BAD_MODEL);
  EXPECT_THAT(hstu_score_error(), HasSubstr("found 99"));
  write_file(manifest, written);
  EXPECT_EQ(open_in_c(folder_ / "export", "", 1 << 20, -1), HSTU_SCORE_BAD_MODEL);
  EXPECT_THAT(hstu_score_error(), HasSubstr("cache_behind"));
  EXPECT_EQ(open_in_c(folder_ / "export", "", 0, 4096), HSTU_SCORE_BAD_MODEL);
  EXPECT_THAT(hstu_score_error(), HasSubstr("4096 bytes of host memory are behind no cache"));
  ASSERT_EQ(open_in_c(folder_ / "export", "", 1 << 20, 1 << 20), HSTU_SCORE_OK) << hstu_score_error();

  RequestInC memory{.events = events_of(0), .columns = {}, .contexts = {}, .items = {1}};
  memory.contexts.assign(static_cast<std::size_t>(hstu_score_columns(scorer_)), 0);
  const hstu_score_request good = memory.get(1, 5000);
  float score = 0;
  EXPECT_EQ(hstu_score(scorer_, &good, 1, &score), HSTU_SCORE_OK) << hstu_score_error();
  const auto refused = [&](auto change) {
    hstu_score_request bad = good;
    change(bad);
    EXPECT_EQ(hstu_score(scorer_, &bad, 1, &score), HSTU_SCORE_BAD_REQUEST);
    return std::string(hstu_score_error());
  };
  EXPECT_THAT(refused([](auto& r) { r.size = 8; }), HasSubstr("8 bytes"));
  EXPECT_THAT(refused([](auto& r) { r.events = -1; }), HasSubstr("events"));
  EXPECT_THAT(refused([](auto& r) { r.event_times = nullptr; }), HasSubstr("event_times"));
  EXPECT_THAT(refused([](auto& r) { r.item_count = 0; }), HasSubstr("at least one candidate"));
  const std::uint8_t actions[64] = {128};
  EXPECT_THAT(refused([&](auto& r) { r.event_actions = actions; }), HasSubstr("sum of bits"));
  EXPECT_EQ(hstu_score(nullptr, &good, 1, &score), HSTU_SCORE_BAD_REQUEST);
}

TEST_F(ScoreInC, AProcessThatWasForkedGetsAnError) {
  train_and_export();
  ASSERT_EQ(open_in_c(folder_ / "export"), HSTU_SCORE_OK) << hstu_score_error();
  RequestInC memory{.events = events_of(0), .columns = {}, .contexts = {}, .items = {1}};
  memory.contexts.assign(static_cast<std::size_t>(hstu_score_columns(scorer_)), 0);
  const hstu_score_request request = memory.get(1, 5000);
  float score = 0;
  const auto child = [&] {
    const hstu_score_status status = hstu_score(scorer_, &request, 1, &score);
    std::fputs(hstu_score_error(), stderr);
    hstu_score_close(scorer_);  // would wait for a thread that is not there
    std::_Exit(status);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(HSTU_SCORE_FAILED),
              "opened this scorer, and .* open one after the fork");
  EXPECT_EQ(hstu_score(scorer_, &request, 1, &score), HSTU_SCORE_OK) << hstu_score_error();
}

// Of a dataset whose times count from 1970.
TEST_F(ScoreInC, RefusesTimesOfAnotherUnitAndCountsItemsWithoutARow) {
  SmallEvents events = small_events(40, 0, 30);
  std::vector<std::int64_t> times;
  for (std::int64_t i = 0; i < std::ssize(events.table.action); ++i)
    times.push_back(1'700'000'000 + events.table.time[i]);
  events.table.time = IntegerColumn();
  events.table.time.append(times);
  std::filesystem::remove_all(folder_ / "dataset");
  std::filesystem::create_directories(folder_ / "dataset");
  write_dataset(folder_ / "dataset", events.description, events.table);
  train_and_export();
  ASSERT_EQ(open_in_c(folder_ / "export"), HSTU_SCORE_OK) << hstu_score_error();
  RequestInC memory{.events = events_of(0), .columns = {}, .contexts = {}, .items = {1, 77}};
  hstu_score_request request = memory.get(1, 1'700'100'000);
  float scores[2] = {};
  EXPECT_EQ(hstu_score(scorer_, &request, 1, scores), HSTU_SCORE_OK) << hstu_score_error();
  EXPECT_EQ(hstu_score_untrained_items(scorer_), 1);
  EXPECT_EQ(hstu_score_catalogue(scorer_), 12);
  for (const std::int64_t factor : {1'000LL, 1'000'000LL, 1'000'000'000LL}) {
    request.time = 1'700'100'000 * factor;
    EXPECT_EQ(hstu_score(scorer_, &request, 1, scores), HSTU_SCORE_BAD_REQUEST) << factor;
    EXPECT_THAT(hstu_score_error(), HasSubstr("requests[0]: time: in s the time"));
  }
  request.time = 1'700'100'000;
  memory.events.time[3] *= 1000;
  EXPECT_EQ(hstu_score(scorer_, &request, 1, scores), HSTU_SCORE_BAD_REQUEST);
  EXPECT_THAT(hstu_score_error(), HasSubstr("events: time: in s the time"));

  std::int64_t items[2] = {}, found = 0;
  for (const std::int64_t k : {0, -1}) {
    EXPECT_EQ(hstu_score_top(scorer_, &request, 1, k, 0, items, scores, &found), HSTU_SCORE_BAD_REQUEST);
    EXPECT_EQ(std::string(hstu_score_error()), fmt::format("k: expected at least 1, found {}", k));
  }
  EXPECT_EQ(hstu_score_code(scorer_, 0, "1"), -1);
  EXPECT_THAT(hstu_score_error(), HasSubstr("has numbers"));
  EXPECT_EQ(hstu_score_code(scorer_, 1, "1"), -1);
}

TEST_F(ScoreInC, TheExamplesRun) {
  const std::string c = std::string(HSTU_PROGRAM_DIR) + "/example_score_c",
                    cpp = std::string(HSTU_PROGRAM_DIR) + "/example_score_cpp";
  train_and_export();
  const CommandResult one = run_command(fmt::format("{} {}", c, (folder_ / "export").string()));
  EXPECT_EQ(one.exit_status, 0) << one.text;
  EXPECT_THAT(one.text, HasSubstr("item 7: label 0."));
  use_retrieval(SequencePreset::sasrec);
  run("lists");
  const CommandResult lists =
      run_command(fmt::format("{} {} {} 2 {} {}", cpp, (folder_ / "lists").string(),
                              (folder_ / "dataset").string(), id_of_user(0), id_of_user(1)));
  EXPECT_EQ(lists.exit_status, 0) << lists.text;
  EXPECT_EQ(std::count(lists.text.begin(), lists.text.end(), '\n'), 4) << lists.text;
}

}  // namespace
}  // namespace hstu::testing
