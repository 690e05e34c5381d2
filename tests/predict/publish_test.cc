// Published exports: which one is current, and which remain.
#include "hstu/predict/publish.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "hstu/base/error.h"
#include "hstu/base/file_lock.h"
#include "hstu/base/files.h"
#include "hstu/embedding/saved_table.h"
#include "hstu/options/make_task.h"
#include "hstu/predict/run_publisher.h"
#include "hstu/run/state.h"
#include "hstu/score/model_folder.h"
#include "hstu/score/scorer.h"
#include "hstu/task/dataset_facts.h"
#include "predict/predict_fixture.h"
#include "support/resource_limit.h"

namespace hstu::testing {
namespace {

class Publish : public Predict {
 protected:
  std::set<std::string> published() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "to"))
      if (!entry.path().filename().string().starts_with(".")) names.insert(entry.path().filename());
    return names;
  }
};

TEST_F(Publish, KeepsTheLatestExportsAndNamesOne) {
  options_.checkpoint = {.every_steps = 2, .keep = 10};
  options_.training.max_steps = 6;
  run("run");
  const auto at = [&](const std::string& step) {
    return publish(
        {.run = folder_ / "run", .to = folder_ / "to", .checkpoint = step, .keep = 2, .full_every = 1});
  };
  at("2"), at("4");
  EXPECT_EQ(std::filesystem::read_symlink(folder_ / "to/current"), "step_00000004");
  // As if it had been killed after the export, or while it removed an old one.
  std::filesystem::remove(folder_ / "to/current");
  std::filesystem::create_directories(folder_ / "to/.removed_step_00000001/weights");
  EXPECT_EQ(at("").filename(), "step_00000006");
  EXPECT_EQ(published(), (std::set<std::string>{"current", "step_00000004", "step_00000006"}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "to/.removed_step_00000001"));
  EXPECT_EQ(open_model_folder(folder_ / "to/current").checkpoint.step(), 6);
  at("4");  // back to an earlier one
  EXPECT_EQ(std::filesystem::read_symlink(folder_ / "to/current"), "step_00000004");
  const FileLock other(folder_ / "to/.lock");
  EXPECT_THAT(message_of<UsageError>([&] { at(""); }), ::testing::HasSubstr("another process"));
}

// The rows of the model at `path` by table and id.
std::map<std::string, std::map<std::int64_t, std::vector<float>>> rows_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::map<std::int64_t, std::vector<float>>> rows;
  for (const auto& description : checkpoint.manifest().tables) {
    const auto name = description.at("name").get<std::string>();
    const SavedTable table(checkpoint.section("tables/" + name));
    for (std::size_t i = 0; i < table.size(); ++i)
      rows[name][table.ids()[i]] = {table.row(i).begin(), table.row(i).end()};
  }
  return rows;
}

TEST_F(Publish, ChangesGiveTheTrainersRowsAndKeepTheirBase) {
  options_.checkpoint = {.every_steps = 2, .keep = 10};
  options_.training.max_steps = 8;
  options_.tables.by_name["user"] = {.capacity = "20", .evict = Evict::lru};
  run("run");
  std::int64_t all_gone = 0;
  for (const int step : {2, 4, 6, 8}) {
    const Path path = publish(
        {.run = folder_ / "run", .to = folder_ / "to", .checkpoint = std::to_string(step), .full_every = 3});
    const Checkpoint trained(find_checkpoint(folder_ / "run/checkpoints", step));
    const ModelFolder model = open_model_folder(folder_ / "to/current");
    EXPECT_EQ(rows_of(model.checkpoint), rows_of(trained)) << step;
    const auto& base = model.checkpoint.manifest().base;
    EXPECT_EQ(base ? base->step : -1, step == 4 || step == 6 ? 2 : -1) << step;
    if (!base) continue;
    for (const auto& table : model.checkpoint.manifest().tables)
      all_gone += table.at("increment").at("gone").get<std::int64_t>();
    Scorer(model.options, model.checkpoint, Dataset(model.options.data.path),
           make_task(model.options, facts_of(Dataset(model.options.data.path))));
  }
  EXPECT_GT(all_gone, 0) << "this test needs rows that leave";
  publish({.run = folder_ / "run", .to = folder_ / "to", .checkpoint = "6", .keep = 1});
  EXPECT_EQ(published(), (std::set<std::string>{"current", "step_00000002", "step_00000006"}));
}

TEST_F(Publish, KeepsTheLastExportWhenTheDiskIsFull) {
  options_.checkpoint = {.every_steps = 2, .keep = 10};
  options_.training.max_steps = 4;
  run("run");
  const auto at = [&](const char* step) {
    return publish({.run = folder_ / "run", .to = folder_ / "to", .checkpoint = step, .full_every = 1});
  };
  at("2");
  // Bytes of a file; without the signal a write fails as on a full disk.
  const auto signal_before = std::signal(SIGXFSZ, SIG_IGN);
  const std::string message = [&] {
    const ResourceLimit small(RLIMIT_FSIZE, 256);
    return message_of<Error>([&] { at("4"); });
  }();
  std::signal(SIGXFSZ, signal_before);
  EXPECT_THAT(message, ::testing::HasSubstr("step_00000004"));
  EXPECT_EQ(published(), (std::set<std::string>{"current", "step_00000002"}));
  EXPECT_EQ(open_model_folder(folder_ / "to/current").checkpoint.step(), 2);
  at("4");
  EXPECT_EQ(open_model_folder(folder_ / "to/current").checkpoint.step(), 4);
}

TEST_F(Publish, IncrementsThatAreTornOrAloneAreRefused) {
  options_.checkpoint = {.every_steps = 2, .keep = 10};
  options_.training.max_steps = 4;
  run("run");
  for (const char* step : {"2", "4"})
    publish({.run = folder_ / "run", .to = folder_ / "to", .checkpoint = step, .full_every = 3});
  const auto read = [&] { rows_of(open_model_folder(folder_ / "to/current").checkpoint); };
  read();
  const Path tables = folder_ / "to/step_00000004/weights/tables";
  int torn = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(tables)) {
    if (!file.is_regular_file() || file.file_size() == 0) continue;
    ++torn;
    const std::string whole = read_file(file.path());
    write_file(file.path(), whole.substr(0, whole.size() / 2));
    EXPECT_THAT(message_of<Error>(read), ::testing::HasSubstr(file.path().filename().string()));
    write_file(file.path(), whole);
  }
  EXPECT_GT(torn, 0);
  read();
  std::filesystem::rename(folder_ / "to/step_00000002", folder_ / "elsewhere");
  EXPECT_THAT(message_of<Error>(read), ::testing::HasSubstr("step_00000002"));
}

TEST_F(Publish, ExportsAgainWhatAnExtendedDatasetDescribes) {
  options_.checkpoint = {.every_steps = 2, .keep = 10};
  options_.training.max_steps = 4;
  run("run");
  const auto at = [&](const char* step) {
    return publish(
        {.run = folder_ / "run", .to = folder_ / "to", .checkpoint = step, .keep = 9, .full_every = 3});
  };
  const auto dataset_of = [&](const char* name) {
    return Json::parse(read_file(folder_ / "to" / name / "manifest.json")).at("dataset").at("id");
  };
  at("2"), at("4");
  const std::string before = Dataset(folder_ / "dataset").manifest().id;
  extend_small_dataset(folder_ / "dataset", 30, 32);
  const std::string after = Dataset(folder_ / "dataset").manifest().id;
  ASSERT_NE(before, after);
  std::filesystem::create_directories(folder_ / "to/.fresh_step_00000004");  // of a publisher that was killed
  at("4");
  EXPECT_EQ(dataset_of("step_00000004"), after);
  EXPECT_EQ(dataset_of("step_00000002"), before);
  const auto written = std::filesystem::last_write_time(folder_ / "to/step_00000004/manifest.json");
  at("4");
  EXPECT_EQ(std::filesystem::last_write_time(folder_ / "to/step_00000004/manifest.json"), written);
  at("2");  // the base of step 4, which stays one
  EXPECT_EQ(dataset_of("current"), after);
  EXPECT_EQ(rows_of(open_model_folder(folder_ / "to/step_00000004").checkpoint),
            rows_of(Checkpoint(find_checkpoint(folder_ / "run/checkpoints", 4))));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "to/.fresh_step_00000004"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "to/.fresh_step_00000002"));
  EXPECT_EQ(open_model_folder(folder_ / "to/current").options.data.path.parent_path(),
            std::filesystem::canonical(folder_ / "to/step_00000002"));
}

// Of a full disk, or of somebody who removes what a later export has as its base.
TEST_F(Publish, ReplacesExportsThatCannotBeOpened) {
  options_.checkpoint = {.every_steps = 2, .keep = 10};
  options_.training.max_steps = 6;
  run("run");
  const auto at = [&](const char* step) {
    publish({.run = folder_ / "run", .to = folder_ / "to", .checkpoint = step, .keep = 9, .full_every = 9});
    EXPECT_EQ(rows_of(open_model_folder(folder_ / "to/current").checkpoint),
              rows_of(Checkpoint(find_checkpoint(folder_ / "run/checkpoints", std::atoi(step)))));
  };
  at("2"), at("4");
  std::filesystem::remove_all(folder_ / "to/step_00000002");  // the base of step 4
  at("6");
  EXPECT_EQ(published(), (std::set<std::string>{"current", "step_00000006"}));
  std::filesystem::resize_file(folder_ / "to/step_00000006/weights/dense.safetensors", 100);
  at("6");
  std::filesystem::remove_all(folder_ / "to/step_00000006/dataset");
  at("6");
  write_file(folder_ / "to/step_00000006/manifest.json", "");
  at("6");
}

TEST_F(Publish, ReplacesWhatAnotherRunPublishedOfThatStep) {
  options_.checkpoint = {.every_steps = 2, .keep = 10};
  options_.training.max_steps = 4;
  for (const char* name : {"run", "other"}) {
    run(name);
    ++options_.seed;
    for (const char* step : {"2", "4"})
      publish({.run = folder_ / name, .to = folder_ / "to", .checkpoint = step, .keep = 9});
    const Checkpoint trained(find_checkpoint(folder_ / name / "checkpoints", 4));
    EXPECT_EQ(rows_of(open_model_folder(folder_ / "to/current").checkpoint), rows_of(trained)) << name;
  }
}

TEST_F(Publish, ARunThatEndsPublishesBehindAnotherProcess) {
  options_.training.max_steps = 2;
  run("run");
  std::filesystem::create_directories(folder_ / "to");
  std::optional<FileLock> other(folder_ / "to/.lock");
  const std::jthread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    other.reset();
  });
  { const RunPublisher publisher({.run = folder_ / "run", .to = folder_ / "to"}); }
  EXPECT_EQ(std::filesystem::read_symlink(folder_ / "to/current"), "step_00000002");
}

TEST_F(Publish, FollowsARunOfTheSameProcess) {
  options_.checkpoint = {.every_steps = 2};
  options_.training.max_steps = 4;
  {
    const RunPublisher publisher({.run = folder_ / "run", .to = folder_ / "to"});
    run("run");
  }
  EXPECT_EQ(std::filesystem::read_symlink(folder_ / "to/current"), "step_00000004");
  const RunPublisher fails({.run = folder_ / "run", .to = folder_ / "run/config.toml"});  // warns alone
  EXPECT_THAT(message_of<UsageError>(
                  [&] { check_publication(folder_ / "run/config.toml", "checkpoint.publish", {}); }),
              ::testing::HasSubstr("checkpoint.publish"));
  EXPECT_THAT(message_of<UsageError>([&] { check_publication("s3:///shop", "--to", {}); }),
              ::testing::HasSubstr("s3:///shop"));
}

}  // namespace
}  // namespace hstu::testing
