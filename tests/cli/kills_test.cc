// hstu train, killed at random and at every named point until it is done, then compared with a run that
// nobody disturbed. `./dev bench kills N` does any number of kills.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hstu/base/child_processes.h"
#include "hstu/base/faults.h"
#include "hstu/base/random.h"
#include "hstu/checkpoint/checkpoint_folder.h"
#include "hstu/checkpoint/manifest.h"
#include "hstu/score/model_folder.h"
#include "sanitizers.h"
#include "training/run_files.h"
#include "training/small_dataset.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

constexpr int kKills = kSanitized ? 6 : 25;  // each start takes seconds under a sanitizer

// Some 27 steps in 3 windows; ids outside their table; saves by three cadences, pruning, evaluations; tables
// that admit, evict and forget; checkpoints of changes.
RunOptions busy_run(const Path& dataset) {
  RunOptions options = testing::small_run(dataset);
  options.training.batch_size = 8;
  options.features.item_rows = 10;
  options.evaluation.every_data_fraction = 0.2;
  options.evaluation.at_start = true;
  options.checkpoint = {5, 4, 0, 1, 2, "auc", true, 3};
  options.tables.by_name["item"] = {.capacity = "6", .evict = Evict::lru_lfu, .admit_after = 4};
  options.tables.by_name["user"] = {.capacity = "9", .evict = Evict::lru, .ttl = "2000s"};
  options.metrics.every_steps = 2;
  options.metrics.tensorboard = true;
  return options;
}

class Kills : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = temporary_folder();
    testing::write_small_dataset(folder_ / "dataset", 12, 24);
    write_file(folder_ / "config.toml", to_toml(busy_run(folder_ / "dataset")));
  }

  // Starts or continues a run; kills it `after` that time when that is not negative, counted from when it has
  // `begun`. Gives waitpid's status.
  int hstu(
      const std::string& name, std::vector<std::string> words, std::chrono::microseconds after,
      const std::function<bool()>& begun = [] { return true; }) {
    const Path run = folder_ / name;
    std::vector<std::string> all{std::string(HSTU_PROGRAM_DIR) + "/hstu", "train", "--threads", "1"};
    if (fs::exists(run)) {
      all.insert(all.end(), {"--resume", run});
    } else {
      all.insert(all.end(), {folder_ / "config.toml", "--output", run});
    }
    all.insert(all.end(), words.begin(), words.end());
    const std::vector<char*> arguments = argument_pointers(all);
    fs::remove(folder_ / "terminal");
    std::fflush(stdout);  // or the child has it too
    const pid_t child = ::fork();
    if (child == 0) {
      (void)!std::freopen((folder_ / "terminal").c_str(), "a", stdout);
      (void)!std::freopen((folder_ / "terminal").c_str(), "a", stderr);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    int status = 0;
    if (after.count() >= 0) {
      while (!begun()) {
        if (::waitpid(child, &status, WNOHANG) == child) return status;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      std::this_thread::sleep_for(after);
      ::kill(child, SIGKILL);
    }
    ::waitpid(child, &status, 0);
    return status;
  }

  // The words that end the next start, at first every named point once, then any of them or, with no words,
  // any moment.
  std::vector<std::string> next_fault(int number) {
    const std::size_t points = std::size(kFaultPoints);
    const auto n = static_cast<std::size_t>(number);
    if (n < points) return {"--fault", fmt::format("{}:1", kFaultPoints[n].name)};
    const auto chosen = random_.below(points + 6);
    if (chosen >= points) return {};
    return {"--fault", fmt::format("{}:{}", kFaultPoints[chosen].name, 1 + random_.below(9))};
  }

  void expect_undisturbed(const std::string& name) {
    SCOPED_TRACE(name);
    EXPECT_EQ(testing::newest_checkpoint(folder_ / name), testing::newest_checkpoint(folder_ / "whole"));
    EXPECT_EQ(testing::checkpoint_names(folder_ / name), testing::checkpoint_names(folder_ / "whole"));
    EXPECT_EQ(testing::course(folder_ / name), testing::course(folder_ / "whole"));
    std::set<std::string> marks;
    for (const Json& line : testing::timeless_log(folder_ / name)) {
      // Step 0 has two restarts of its own: before its save, which the best evaluation asks for, and behind
      // it.
      if (line.at("event") != "resume" || line.at("step") == 0) continue;
      EXPECT_TRUE(marks.insert(line.at("step").dump()).second) << "two marks of one restart";
    }
    if (HasFailure()) ++differences_;
  }

  Path folder_;
  RandomStream random_{
      derive_key(static_cast<std::uint64_t>(::testing::UnitTest::GetInstance()->random_seed()), "kills")};
  int differences_ = 0;
};

TEST_F(Kills, AnyNumberOfKillsChangesNeitherTheLastCheckpointNorTheLog) {
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(hstu("whole", {}, std::chrono::microseconds(-1)), 0) << read_file(folder_ / "terminal");
  const auto whole = std::chrono::steady_clock::now() - start;
  Json tables;
  for (const Json& line : testing::timeless_log(folder_ / "whole"))
    if (line.at("event") == "train") tables = line.at("tables");
  EXPECT_GT(tables["item"]["admitted"], 0);
  EXPECT_GT(tables["item"]["evicted"], 0);
  EXPECT_GT(tables["user"]["evicted"], 0);
  int kills = 0, runs = 0;
  while (kills < kKills) {
    const std::string name = fmt::format("run{}", runs++);
    for (bool done = false; !done;) {
      std::vector<std::string> fault;
      std::chrono::microseconds after{-1};
      if (kills < kKills) {
        fault = next_fault(kills);
        if (fault.empty()) {
          const auto longest = std::chrono::duration_cast<std::chrono::microseconds>(whole).count();
          after = std::chrono::microseconds(random_.below(static_cast<std::uint64_t>(longest)));
        }
      }
      const int status = hstu(name, fault, after);
      const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
      ASSERT_TRUE(killed || status == 0)
          << fmt::format("{} ", fmt::join(fault, " ")) << read_file(folder_ / "terminal");
      kills += killed;
      done = !killed;
    }
    expect_undisturbed(name);
  }
  fmt::print("kills: {} kills in {} runs, {} differences (seed {})\n", kills, runs, differences_,
             ::testing::UnitTest::GetInstance()->random_seed());
}

// Why the export that `published`/current names does not open; "": it does, or another one is current now.
std::string problem_of_current(const Path& published) {
  const auto name = [&] {
    std::error_code none;
    return fs::read_symlink(published / kCurrentLink, none);
  };
  const Path before = name();
  if (before.empty()) return "";  // nothing is published yet
  try {
    open_model_folder(published / before);
    return "";
  } catch (const std::exception& error) {
    return name() == before ? error.what() : "";  // it was removed when another one was current
  }
}

TEST_F(Kills, WhatARunHasPublishedIsWholeWheneverItIsKilled) {
  const Path published = folder_ / "published";
  fs::create_directory(published);
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(published)) found.insert(entry.path().filename());
    return found;
  };
  std::atomic<bool> done = false;
  std::string problem;
  std::int64_t opened = 0;
  std::thread reader([&] {
    for (; !done && problem.empty(); ++opened) {
      problem = problem_of_current(published);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  constexpr int kRounds = kSanitized ? 3 : 12;
  int kills = 0;
  for (int round = 1; round <= kRounds; ++round) {
    const std::vector<std::string> words{"--set", fmt::format("training.max_steps={}", 2 * round)};
    ASSERT_EQ(hstu("whole", words, std::chrono::microseconds(-1)), 0) << read_file(folder_ / "terminal");
    std::vector<std::string> publishing = words;
    publishing.insert(publishing.end(), {"--set", "checkpoint.publish=" + published.string()});
    // Some moment after the first file of a publication; in the last round none.
    const auto before = names();
    const auto moment = [&] {
      if (round == kRounds) return std::chrono::microseconds(-1);
      return std::chrono::microseconds(random_.below(60'000));
    }();
    const int status = hstu("run", publishing, moment, [&] { return names() != before; });
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    ASSERT_TRUE(killed || status == 0) << read_file(folder_ / "terminal");
    kills += killed;
    EXPECT_EQ(problem_of_current(published), "") << "round " << round;
  }
  done = true;
  reader.join();
  EXPECT_EQ(problem, "");
  EXPECT_GT(opened, 0);
  EXPECT_GT(kills, 0);
  const auto trained = [&](const char* name) {
    auto files = testing::newest_checkpoint(folder_ / name);
    files.erase(kManifestName);  // it has the configuration, which says where one of them publishes
    return files;
  };
  EXPECT_EQ(trained("run"), trained("whole"));
  const std::string last = fmt::format("step_{:08}", 2 * kRounds);
  EXPECT_EQ(fs::read_symlink(published / kCurrentLink), last);
  for (const std::string& name : names()) EXPECT_FALSE(name.ends_with(".partial")) << name;
  fmt::print("kills while publishing: {}, and {} openings meanwhile\n", kills, opened);
}

TEST_F(Kills, TheFirstSignalSavesAndEndsWithStatus75) {
  for (const char* point : {"open", "step.middle", "save.staged", "evaluation.batch"}) {
    SCOPED_TRACE(point);
    const int status =
        hstu(point, {"--fault", fmt::format("{}:2:term", point)}, std::chrono::microseconds(-1));
    if (std::string(point) == "open") {
      EXPECT_EQ(status, 0) << "it opens but once";
      continue;
    }
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 75);
    EXPECT_THAT(read_file(folder_ / "terminal"), ::testing::HasSubstr("--resume"));
    EXPECT_EQ(hstu(point, {}, std::chrono::microseconds(-1)), 0);
    EXPECT_EQ(testing::course(folder_ / point), testing::course(folder_ / "open"));
    EXPECT_EQ(testing::newest_checkpoint(folder_ / point), testing::newest_checkpoint(folder_ / "open"));
  }
}

TEST_F(Kills, AHangupAndABatchSystemsWarningSaveAsOftenAsTheyCome) {
  for (const char* signal : {"hup", "usr1"}) {
    SCOPED_TRACE(signal);
    const int status = hstu(signal,
                            {"--fault", fmt::format("step.begin:2:{}", signal), "--fault",
                             fmt::format("step.middle:2:{}", signal)},
                            std::chrono::microseconds(-1));
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 75);
    EXPECT_EQ(hstu(signal, {}, std::chrono::microseconds(-1)), 0);
  }
}

TEST_F(Kills, ARunUnderNohupOutlivesTheTerminal) {
  std::signal(SIGHUP, SIG_IGN);  // the program inherits it
  const int status = hstu("run", {"--fault", "step.middle:2:hup"}, std::chrono::microseconds(-1));
  std::signal(SIGHUP, SIG_DFL);
  EXPECT_EQ(status, 0);
}

TEST_F(Kills, TheSecondSignalEndsAtOnce) {
  const int status = hstu("run", {"--fault", "step.begin:2:term", "--fault", "step.middle:2:term"},
                          std::chrono::microseconds(-1));
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_EQ(hstu("run", {}, std::chrono::microseconds(-1)), 0) << "and the run continues all the same";
}

}  // namespace
}  // namespace hstu
