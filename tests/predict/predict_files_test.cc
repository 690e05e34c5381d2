// What predict reads and writes: other programs at work, replaced and altered files, compressed tables,
// standard streams, and the items that a user has had.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "command.h"
#include "hstu/base/checksum.h"
#include "hstu/base/staged_file.h"
#include "hstu/dataset/names_writer.h"
#include "hstu/predict/export.h"
#include "hstu/run/pruned.h"
#include "predict/predict_fixture.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

class PredictFiles : public testing::Predict {
 protected:
  // The dataset again, with codes for the texts of "worth" in this order.
  void write_codes(const std::vector<std::string>& texts) const {
    const Path folder = folder_ / "dataset";
    Manifest manifest = read_manifest(folder);
    for (const char* const kind : {"names_context_worth"})
      for (auto column = manifest.columns.begin(); column != manifest.columns.end();)
        column = column->first.starts_with(kind) ? manifest.columns.erase(column) : std::next(column);
    std::erase(manifest.names, "context_worth");
    write_code_names(folder, "context_worth", texts, manifest);
    manifest.id = dataset_id(manifest.columns);
    write_file(folder / kManifestFile, manifest_to_json(manifest));
  }
  void write_requests(const std::string& text = "user,time,item\n3,20000,1\n") const {
    write_file(folder_ / "requests.csv", text);
  }
  std::string refusal(const PredictOptions& options) const {
    return message_of([&] { predict(options); });
  }
  // Of events of the user before the time.
  std::vector<std::int64_t> items_of(std::int64_t user, std::int64_t time, std::uint8_t bits) const {
    const Dataset dataset(folder_ / "dataset");
    const PositionRange events = dataset.events_before_time(user, time).last_range();
    std::vector<std::int64_t> items;
    for (std::int64_t p = events.begin; p < events.end; ++p)
      if ((dataset.action()[static_cast<std::size_t>(p)] & bits) != 0) items.push_back(dataset.item()[p]);
    return items;
  }
};

TEST_F(PredictFiles, AnOutputThatAnotherProgramIsWritingIsRefusedBeforeAnyWork) {
  write_requests();
  PredictOptions options = request("a.csv");
  options.model = folder_ / "not even a run";
  const StagedFile other(folder_ / "a.csv", StagedFile::Existing::refuse);
  EXPECT_THAT(refusal(options), HasSubstr("another program is writing"));
  options.output = folder_ / "b.csv";
  EXPECT_THAT(refusal(options), HasSubstr("is not a run"));
}

// The codes of the replaced dataset once gave the row of one text to another.
TEST_F(PredictFiles, AReplacedDatasetWithOtherTextsBehindCodesIsRefused) {
  write_codes({"home", "shop"});
  train_and_evaluate();
  write_requests();
  const std::vector<float> scores = floats(scored(request("a.csv"))["score"]);
  write_codes({"shop", "home"});
  EXPECT_THAT(refusal(request("b.csv")), HasSubstr("texts behind the codes of context_worth"));
  // Another log with the same texts is read.
  testing::write_small_dataset(folder_ / "dataset", 40, 29);
  write_codes({"home", "shop"});
  EXPECT_EQ(scored(request("c.csv"))["score"].size(), scores.size());
}

TEST_F(PredictFiles, AnAlteredColumnOfAnExportIsRefused) {
  write_codes({"home", "shop"});
  train_and_evaluate();
  write_requests();
  export_model({.run = folder_ / "run", .output = folder_ / "export"});
  PredictOptions options = request("a.csv");
  options.model = folder_ / "export";
  options.data = folder_ / "dataset";
  EXPECT_EQ(scored(options)["score"].size(), 1u);
  const Path altered = folder_ / "export/dataset/names_context_worth.npy";
  std::string bytes = read_file(altered);
  bytes.back() = 'x';
  write_file(altered, bytes);
  options.output = folder_ / "b.csv";
  EXPECT_THAT(refusal(options), HasSubstr("names_context_worth.npy: its checksum is"));
  // Its manifest is named too, and not that the folder is no run.
  for (const char* manifest : {"null", "{}", "{\"format\": 5}", "{\"format\": \"other\"}", "{"}) {
    write_file(folder_ / "export/manifest.json", manifest);
    EXPECT_THAT(refusal(options), HasSubstr("export/manifest.json")) << manifest;
  }
  std::filesystem::remove(folder_ / "export/manifest.json");
  EXPECT_THAT(refusal(options), HasSubstr("export/manifest.json: missing from an export"));
}

TEST_F(PredictFiles, TablesMayBeCompressedByGzip) {
  if (!std::filesystem::exists(Path(HSTU_PROGRAM_DIR) / "hstu-prepare") || !has_command("gzip"))
    GTEST_SKIP() << "no hstu-prepare here";
  train_and_evaluate();
  std::string text = "user,time,item\n";
  for (int i = 0; i < 30'000; ++i) text += fmt::format("{},{},{}\n", i % 40, 20'000 + i, i % 12);
  write_requests(text);
  PredictOptions options = request("a.csv");
  const std::vector<std::string> expected = scored(options)["score"];
  ASSERT_EQ(run_command(fmt::format("gzip {}", options.requests.string())).exit_status, 0);
  options.requests += ".gz";
  options.output = folder_ / "b.csv";
  EXPECT_EQ(scored(options)["score"], expected);
  std::filesystem::resize_file(options.requests, std::filesystem::file_size(options.requests) / 2);
  options.output = folder_ / "c.csv";
  EXPECT_THAT(refusal(options), HasSubstr("could not be read to its end"));
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

// With a file as standard input and another one as standard output.
class Redirected {
 public:
  Redirected(const Path& input, const Path& output)
      : input_(::dup(STDIN_FILENO)), output_(::dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    move(::open(input.c_str(), O_RDONLY), STDIN_FILENO);
    move(::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
  }
  ~Redirected() {
    move(input_, STDIN_FILENO);
    move(output_, STDOUT_FILENO);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  static void move(int from, int to) {
    ::dup2(from, to);
    ::close(from);
  }
  int input_, output_;
};

TEST_F(PredictFiles, AHyphenIsAStandardStream) {
  train_and_evaluate();
  write_requests("user,time,candidates\n3,20000,1 2 3\n4,20000,5\n");
  PredictOptions options = request("a.csv");
  predict(options);
  options.requests = options.output = "-";
  {
    const Redirected streams(folder_ / "requests.csv", folder_ / "b.csv");
    predict(options);
  }
  EXPECT_EQ(read_file(folder_ / "b.csv"), read_file(folder_ / "a.csv"));
  options.events = "-";
  EXPECT_THAT(refusal(options), HasSubstr("only one can be -"));
}

// A run that trains on may prune a checkpoint while it is read.
TEST_F(PredictFiles, ACheckpointThatTheRunReplacesIsReadAgainAsTheNewOne) {
  train_and_evaluate();
  const Path checkpoints = RunFolder{folder_ / "run"}.checkpoints();
  int calls = 0;
  const auto body = [&](const Path& path) {
    if (++calls > 1) return path.filename().string();
    std::filesystem::copy(path, checkpoints / "step_00000099", std::filesystem::copy_options::recursive);
    std::filesystem::remove_all(path);
    return Checkpoint(path).path().string();
  };
  EXPECT_EQ(read_checkpoint(checkpoints, "", body), "step_00000099");
  EXPECT_EQ(calls, 2);
  const auto torn = [&](const Path&) -> int { throw Error(fmt::format("torn {}", ++calls)); };
  EXPECT_EQ(message_of([&] { read_checkpoint(checkpoints, "", torn); }), "torn 3");
  // What has been written by then must not be written again.
  const auto late = [&](const Path& path) -> int {
    std::filesystem::rename(path, checkpoints / fmt::format("step_{:08}", 100 + ++calls));
    throw Error("late");
  };
  EXPECT_EQ(message_of([&] { read_checkpoint(checkpoints, "", late, [&] { return calls < 6; }); }), "late");
  EXPECT_EQ(calls, 6);
}

TEST_F(PredictFiles, ItemsThatTheUserHasHadAreLeftOut) {
  train_and_evaluate();
  write_requests("user,time,candidates\n3,9000,0 1 2 3 4 5 6 7 8 9 10 11\n999,9000,1 2\n");
  Columns all = scored(request("all.csv"));
  PredictOptions options = request("a.csv");
  options.exclude_seen = true;
  Columns others = scored(options);
  const std::vector<std::int64_t> seen = items_of(3, 9000, 0x7f);
  std::vector<std::string> items, scores;
  for (std::size_t i = 0; i < all["item"].size(); ++i) {
    const bool had =
        std::find(seen.begin(), seen.end(), parse_number<std::int64_t>(all["item"][i])) != seen.end();
    if (all["user"][i] == "3" && had) continue;
    items.push_back(all["item"][i]);
    scores.push_back(all["score"][i]);
  }
  ASSERT_LT(items.size(), all["item"].size());
  ASSERT_GT(items.size(), 2u);
  EXPECT_EQ(others["item"], items);
  EXPECT_EQ(others["score"], scores);
  EXPECT_EQ(last_.excluded, static_cast<std::int64_t>(all["item"].size() - items.size()));
}

TEST_F(PredictFiles, ItemsOfGivenActionsAreLeftOutOfACatalogue) {
  train_and_evaluate();
  write_requests("user,time\n3,9000\n4,-1\n5,99999\n");
  write_file(folder_ / "items.csv", "item\n0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n");
  PredictOptions options = request("a.csv");
  options.catalogue = folder_ / "items.csv";
  options.top = 12;
  options.exclude_seen = true;
  options.seen_actions = {"positive"};
  Columns others = scored(options);
  for (const std::int64_t user : {3, 4, 5}) {
    const std::vector<std::int64_t> seen = items_of(user, user == 3 ? 9000 : user == 4 ? -1 : 99999, 1);
    for (std::int64_t item = 0; item < 12; ++item) {
      std::size_t found = 0;
      for (std::size_t i = 0; i < others["item"].size(); ++i) {
        found +=
            others["user"][i] == std::to_string(user) && others["item"][i] == std::to_string(item) ? 1 : 0;
      }
      EXPECT_EQ(found, std::find(seen.begin(), seen.end(), item) == seen.end() ? 1u : 0u)
          << user << " " << item;
    }
  }
  options.output = folder_ / "b.csv";
  options.seen_actions = {"positives"};
  EXPECT_THAT(refusal(options), HasSubstr("did you mean \"positive\""));
  options.seen_actions = {"positive", "positive"};
  EXPECT_THAT(refusal(options), HasSubstr("twice"));
}

TEST_F(PredictFiles, ARequestOfWhichNothingIsLeftHasNoRows) {
  train_and_evaluate();
  const std::string had = std::to_string(items_of(3, 20000, 0x7f).front());
  write_requests(fmt::format("user,time,item\n3,20000,{0}\n999,20000,{0}\n3,20000,{0}\n", had));
  PredictOptions options = request("a.csv");
  options.exclude_seen = true;
  options.batch_size = 1;
  EXPECT_THAT(scored(options)["request"], ElementsAre("2"));
  EXPECT_EQ(last_.without_items, 2);
  EXPECT_EQ(last_.requests, 3);
  write_requests(fmt::format("user,time,item\n3,20000,{}\n", had));
  options.output = folder_ / "b.csv";
  EXPECT_TRUE(scored(options)["request"].empty());
}

}  // namespace
}  // namespace hstu
