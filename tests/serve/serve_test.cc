// The server, asked by a client of Python's standard library (client.py).
#include "hstu/serve/serve.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/checkpoint/checkpoint_folder.h"
#include "hstu/checkpoint/manifest.h"
#include "hstu/serve/binary_requests.h"
#include "hstu/serve/json_requests.h"
#include "hstu/serve/load.h"
#include "hstu/serve/model_watch.h"
#include "sanitizers.h"
#include "serve/serve_fixture.h"
#include "support/resource_limit.h"

namespace hstu::testing {
namespace {

// Two versions, requests and the answers of each.
class ServeVersions : public Serve {
 protected:
  void SetUp() override {
    Serve::SetUp();
    use_ranking(200, {"positive", "negative"});
    options_.training.max_steps = 2;
    run("run");
    std::filesystem::create_directories(published());
    export_model({.run = folder_ / "run", .output = published() / "first"});
    options_.training.max_steps = 4;
    options_.seed = 7;
    run("longer");
    export_model({.run = folder_ / "longer", .output = folder_ / "second"});
    RequestScorer first({.model = published() / "first"}), second({.model = folder_ / "second"});
    first_ = first.version(), second_ = second.version();
    ASSERT_NE(first_, second_);
    std::ofstream cases(folder_ / "cases.jsonl");
    const auto add = [&](const char* path, Asked asked, const Json& body) {
      Json of_versions;
      for (RequestScorer* const model : {&first, &second})
        of_versions[model->version()] = answer(*model, body, asked);
      cases << Json{{"path", path}, {"body", body}, {"answers", of_versions}}.dump() << "\n";
    };
    for (std::int64_t u = 0; u < 5; ++u) {
      add("/score", Asked::scores, body_of(u, {3, u, 7}));
      Json top = body_of(u, {});
      top["k"] = 3, top["by"] = "negative", top["exclude_seen"] = u % 2 == 0;
      add("/top", Asked::top, top);
    }
    add("/score", Asked::scores, Json{{"requests", {body_of(7, {1}), body_of(8, {2, 3})}}});
  }
  Path published() const { return folder_ / "published"; }

  std::string first_, second_;
};

TEST_F(ServeVersions, EveryAnswerIsOfOnePublishedVersionAndNoneIsLost) {
  ServeOptions options = serve_options(published() / "first");
  options.watch = published();
  const Server server(options);
  const CommandResult result =
      client(fmt::format("versions {} {} 40 {} {}", server.port(), (folder_ / "cases.jsonl").string(),
                         (folder_ / "second").string(), (published() / "second").string()));
  EXPECT_EQ(result.exit_status, 0) << result.text;
  EXPECT_EQ(server.model(), second_);
}

TEST_F(ServeVersions, AKilledServerBeginsAgainWithWhatIsPublished) {
  std::filesystem::rename(folder_ / "second", published() / "second");
  const CommandResult result =
      client(fmt::format("killed {}/hstu {} {} first={} second={}", HSTU_PROGRAM_DIR, published().string(),
                         (folder_ / "cases.jsonl").string(), first_, second_));
  EXPECT_EQ(result.exit_status, 0) << result.text;
}

TEST_F(Serve, RefusesHostileRequestsAndAnswersTheNext) {
  train_and_export();
  ServeOptions options = serve_options(folder_ / "export");
  options.queue.waiting = 3;
  const Server server(options);
  const CommandResult result = client(fmt::format("hostile {} 100000", server.port()));
  EXPECT_EQ(result.exit_status, 0) << result.text;
}

TEST_F(Serve, CountsEveryRequestThatItRefuses) {
  train_and_export();
  ServeOptions options = serve_options(folder_ / "export");
  options.most_candidates = 200;
  const Server server(options);
  const CommandResult result = exchanges(fmt::format("refused {}", server.port()));
  EXPECT_EQ(result.exit_status, 0) << result.text;
}

TEST_F(Serve, LosesNoAnswerAndTellsEverybodyWhenItEnds) {
  train_and_export();
  const CommandResult result = exchanges(fmt::format(
      "drained {}/hstu {} '{}'", HSTU_PROGRAM_DIR, (folder_ / "export").string(), body_of(1, {2, 3}).dump()));
  EXPECT_EQ(result.exit_status, 0) << result.text;
}

TEST_F(Serve, GoesOnWhenItsFilesAreEmptied) {
  use_ranking(200, {"positive"});
  train_and_export();
  std::filesystem::copy(folder_ / "dataset", folder_ / "data", std::filesystem::copy_options::recursive);
  const CommandResult result =
      exchanges(fmt::format("overwritten {}/hstu {} {} '{}'", HSTU_PROGRAM_DIR, (folder_ / "export").string(),
                            (folder_ / "data").string(), body_of(1, {2, 3}).dump()));
  EXPECT_EQ(result.exit_status, 0) << result.text;
}

TEST_F(Serve, AnswersValidRequestsBetweenHostileOnes) {
  train_and_export();
  write_file(folder_ / "body.json", body_of(1, {2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).dump());
  ServeOptions options = serve_options(folder_ / "export");
  options.http.most_body_bytes = std::int64_t{8} << 20;
  options.http.request_seconds = 10;
  const Server server(options);
  const CommandResult result = run_command(fmt::format(
      "python3 {}/tools/serve_load.py --port {} --body {} --seconds 2 --hostile 100 --connections 16",
      HSTU_SOURCE_DIR, server.port(), (folder_ / "body.json").string()));
  EXPECT_EQ(result.exit_status, 0) << result.text;
}

// They are answered also while what is published cannot be opened.
TEST_F(Serve, AnswersBesideTenThousandSlowClients) {
  constexpr std::int64_t kClients = 10'000, kMostBytes = std::int64_t{200} << 20;
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max < kClients + 200)
    GTEST_SKIP() << "this process may open " << files.rlim_max << " files: fewer than the connections";
  const ResourceLimit raised(RLIMIT_NOFILE, files.rlim_max);
  train_and_export();
  ServeOptions options = serve_options(folder_ / "export");
  options.http.request_seconds = 5;  // the slow ones stay until all are there
  options.watch = folder_ / "published";
  std::filesystem::create_directories(options.watch);
  std::filesystem::copy(folder_ / "export", options.watch / "torn", std::filesystem::copy_options::recursive);
  for (const auto& file : std::filesystem::recursive_directory_iterator(options.watch / "torn"))
    if (file.is_regular_file() && file.path().filename() != kManifestName)
      std::filesystem::resize_file(file.path(), file.file_size() / 2);
  EXPECT_THROW(RequestScorer({.model = options.watch / "torn"}), Error);
  std::filesystem::create_directory_symlink("torn", options.watch / "current");
  {
    const Server server(options);
    const CommandResult result =
        client(fmt::format("crowded {} {} {} {} '{}'", server.port(), getpid(), kClients,
                           kSanitized ? 8 * kMostBytes : kMostBytes, body_of(1, {2, 3}).dump()));
    EXPECT_EQ(result.exit_status, 0) << result.text;
  }
}

TEST_F(Serve, AnswersWhatItHasAcceptedBeforeItEnds) {
  train_and_export();
  const CommandResult result = client(fmt::format("stopped {}/hstu {} '{}'", HSTU_PROGRAM_DIR,
                                                  (folder_ / "export").string(), body_of(1, {2, 3}).dump()));
  EXPECT_EQ(result.exit_status, 0) << result.text;
}

TEST_F(Serve, AnswersNumbersInBinaryAsInJson) {
  use_ranking(200, {"positive"});
  train_and_export();
  RequestScorer model({.model = folder_ / "export"});
  const std::vector<ScoreRequest> requests =
      read_binary_requests(binary_body_of(3, {4, 9}), Asked::scores, 1);
  ASSERT_EQ(requests.size(), 1U);
  const ScoreRequest* const request = requests.data();
  const std::string binary = write_binary_answers(model.answer({&request, 1}), "v");
  float scores[2];
  ASSERT_EQ(binary.size(), 8U * (4 + 3 + 1));
  std::memcpy(scores, binary.data() + 56, sizeof scores);
  const Json json = Json::parse(answer(model, body_of(3, {4, 9}), Asked::scores));
  EXPECT_EQ(json["scores"][0].get<float>(), scores[0]);
  EXPECT_EQ(json["scores"][1].get<float>(), scores[1]);
}

TEST_F(Serve, LeavesOutItemsOfSomeActionsAlone) {
  use_ranking(200, {"positive"});
  train_and_export();
  RequestScorer model({.model = folder_ / "export"});
  const auto top = [&](const Json& exclude_seen) {
    Json body = body_of(3, {});
    body["k"] = 1000, body["exclude_seen"] = exclude_seen;
    return Json::parse(answer(model, body, Asked::top))["items"].get<std::vector<std::int64_t>>();
  };
  const RequestEvents events = events_of(3);
  std::vector<std::int64_t> expected = top(false);
  for (std::size_t i = 0; i < events.item.size(); ++i)
    if (events.time[i] < 25'500 && (events.action[i] & 2) != 0) std::erase(expected, events.item[i]);
  EXPECT_LT(expected.size(), top(false).size());
  EXPECT_GT(expected.size(), top(true).size());
  EXPECT_EQ(top("negative"), expected);
  EXPECT_EQ(top(2), expected);
  const auto binary = read_binary_requests(binary_body_of(3, {}, 1000, 2 << 8), Asked::top, 1);
  const ScoreRequest* const request = binary.data();
  EXPECT_EQ(model.answer({&request, 1})[0].items, expected);
  for (const Json& wrong : {Json("purchase"), Json(0), Json(4), Json(1.5), Json(nullptr)})
    EXPECT_NE(message_of<UsageError>([&] { top(wrong); }), "") << wrong;
}

TEST_F(Serve, NamesTheRequestOfABatchThatIsWrongAndAnswersNone) {
  train_and_export();
  const Server server(serve_options(folder_ / "export"));
  Json good = body_of(1, {}), none = body_of(2, {});
  good["k"] = 2, none["k"] = 0;
  const auto refused = [&](const std::string& body, const char* words, const char* type = "json") {
    write_file(folder_ / "body", body);
    const CommandResult result = client(
        fmt::format("refused {} /top {} {} '{}'", server.port(), (folder_ / "body").string(), type, words));
    EXPECT_EQ(result.exit_status, 0) << result.text;
  };
  refused(Json{{"requests", {good, good, none}}}.dump(), "requests[2]: k: expected at least 1, found 0");
  refused(none.dump(), "k: expected at least 1, found 0");
  refused(binary_body_of(1, {}, -3), "requests[0]: k: expected at least 1, found -3", "octet-stream");
  EXPECT_TRUE(counts(server, "hstu_requests_failed_total 3\n"));
  EXPECT_TRUE(counts(server, "hstu_batches_total 0\n"));
}

TEST_F(Serve, CountsItemsThatTheModelHasNoRowFor) {
  use_ranking(200, {"positive"});
  train_and_export();
  RequestScorer model({.model = folder_ / "export"});
  EXPECT_EQ(Json::parse(answer(model, body_of(1, {3, 4}), Asked::scores))["untrained_items"], 0);
  Json body = body_of(1, {3, 77, -1});
  body["events"]["item"][0] = 1'000'000;
  EXPECT_EQ(Json::parse(answer(model, body, Asked::scores))["untrained_items"], 3);
  const Server server(serve_options(folder_ / "export"));
  write_file(folder_ / "bodies.jsonl", body.dump() + "\n");
  measure_server({.port = server.port(), .requests = folder_ / "bodies.jsonl", .rate = 20, .seconds = 0.1});
  EXPECT_TRUE(counts(server, "hstu_unknown_items_total 6\n"));
}

TEST_F(Serve, KIsOfTopAloneAndMayBeLargerThanTheCatalogue) {
  use_ranking(200, {"positive"});
  train_and_export();
  RequestScorer model({.model = folder_ / "export"});
  Json body = body_of(1, {3, 4});
  for (const std::int64_t k : {std::int64_t{2}, std::int64_t{3}, std::numeric_limits<std::int64_t>::max()}) {
    body["k"] = k;
    EXPECT_EQ(Json::parse(answer(model, body, Asked::top))["items"].size(), 2U) << k;
    EXPECT_EQ(read_binary_requests(binary_body_of(1, {3, 4}, k), Asked::top, 1)[0].top, k);
  }
  EXPECT_THAT(
      message_of<UsageError>([&] { read_binary_requests(binary_body_of(1, {3}, 5), Asked::scores, 1); }),
      ::testing::HasSubstr("requests[0]: body: k and flags"));
}

TEST_F(Serve, RefusesDatesWhereTimesDoNotCountFrom1970) {
  train_and_export();
  RequestScorer model({.model = folder_ / "export"});
  Json body = body_of(1, {3});
  body["time"] = "2024-05-01";
  EXPECT_THAT(message_of<UsageError>([&] { answer(model, body, Asked::scores); }),
              ::testing::HasSubstr("time: the times of the histories do not count from 1970"));
}

TEST_F(Serve, KeepsItsModelWhileWhatIsPublishedIsForOtherRequests) {
  train_and_export();
  const Path published = folder_ / "published";
  std::filesystem::create_directories(published);
  std::filesystem::rename(folder_ / "export", published / "first");
  options_.seed = 9;
  run("longer");
  export_model({.run = folder_ / "longer", .output = published / "same"});
  use_retrieval(SequencePreset::sasrec);
  run("lists");
  export_model({.run = folder_ / "lists", .output = published / "lists"});
  set_link(published, "current", published / "first");
  ServeOptions options = serve_options(published / "current");
  options.watch = published;
  const std::string first = RequestScorer({.model = published / "first"}).version(),
                    same = RequestScorer({.model = published / "same"}).version(),
                    lists = RequestScorer({.model = published / "lists"}).version();
  {
    const Server server(options);
    set_link(published, "current", published / "lists");
    EXPECT_TRUE(counts(server, "hstu_model_load_failures_total 1\n"));
    EXPECT_EQ(server.model(), first);
    set_link(published, "current", published / "same");
    EXPECT_TRUE(serves(server, same));
  }
  options.any_kind = true;
  const Server server(options);
  set_link(published, "current", published / "lists");
  EXPECT_TRUE(serves(server, lists));
}

TEST_F(Serve, OpensAnExportThatWasCopiedWhileItLooked) {
  train_and_export();
  options_.seed = 9;
  run("longer");
  export_model({.run = folder_ / "longer", .output = folder_ / "second"});
  ServeOptions options = serve_options(folder_ / "export");
  options.watch = folder_ / "published";
  std::filesystem::create_directories(options.watch / "second");
  std::filesystem::create_directory_symlink("second", options.watch / "current");
  const Server server(options);
  EXPECT_TRUE(counts(server, "hstu_model_load_failures_total 1\n"));  // the link names an empty folder
  const auto copy = [&](const char* name) {
    std::filesystem::copy(folder_ / "second" / name, options.watch / "second" / name,
                          std::filesystem::copy_options::recursive);
  };
  copy("manifest.json"), copy("model.toml"), copy("dataset");
  EXPECT_TRUE(counts(server, "hstu_model_loads_total 1\n"));
  copy("weights");
  EXPECT_TRUE(serves(server, RequestScorer({.model = folder_ / "second"}).version()));
}

TEST_F(Serve, IsMeasuredUnderALoad) {
  train_and_export();
  const Server server(serve_options(folder_ / "export"));
  write_file(folder_ / "bodies.jsonl", body_of(1, {2}).dump() + "\n" + R"({"user": 1})" + "\n");
  const Json measured = measure_server({.port = server.port(),
                                        .requests = folder_ / "bodies.jsonl",
                                        .rate = 200,
                                        .seconds = 0.2,
                                        .connections = 4});
  EXPECT_EQ(measured["answers"], 20);
  EXPECT_EQ(measured["refused"], 20);
  EXPECT_EQ(measured["lost"], 0);
  EXPECT_LE(measured["p50_ms"], measured["p99_ms"]);
}

TEST_F(Serve, FollowsTheLinkThatNamesTheCurrentExport) {
  train_and_export();
  const Path published = folder_ / "published";
  std::filesystem::create_directories(published / "torn");
  write_file(published / "torn/manifest.json", "{");
  EXPECT_EQ(published_export(published), std::nullopt);
  std::filesystem::copy(folder_ / "export", published / "a", std::filesystem::copy_options::recursive);
  std::filesystem::copy(folder_ / "export", published / "b", std::filesystem::copy_options::recursive);
  EXPECT_EQ(published_export(published)->filename(), "b");
  std::filesystem::create_directory_symlink("a", published / "current");
  EXPECT_EQ(published_export(published)->filename(), "a");
}

}  // namespace
}  // namespace hstu::testing
