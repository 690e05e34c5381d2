// hstu train on several processes: launchers, killed ranks, signals.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hstu/base/child_processes.h"
#include "hstu/base/clock.h"
#include "hstu/base/random.h"
#include "hstu/comm/socket.h"
#include "hstu/device/device.h"
#include "sanitizers.h"
#include "training/run_files.h"
#include "training/small_dataset.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string kProgram = std::string(HSTU_PROGRAM_DIR) + "/hstu";

class RankedProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = temporary_folder();
    testing::write_small_dataset(folder_ / "dataset", 12, 24);
    RunOptions options = testing::small_run(folder_ / "dataset");
    options.training.batch_size = 7;
    options.checkpoint.every_steps = 2;
    options.metrics.every_steps = 2;
    options.device = "host";
    write_file(folder_ / "config.toml", to_toml(options));
  }

  // Begins or continues a run.
  Words train(const std::string& name) const {
    const Path run = folder_ / name;
    if (fs::exists(run)) return {kProgram, "train", "--resume", run};
    return {kProgram, "train", folder_ / "config.toml", "--output", run};
  }
  static Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  pid_t start(Words words, const Words& environment = {}) const {
    const std::vector<char*> arguments = argument_pointers(words);
    const pid_t child = ::fork();
    if (child != 0) return child;
    for (const std::string& variable : environment) ::putenv(::strdup(variable.c_str()));
    (void)!std::freopen((folder_ / "terminal").c_str(), "a", stdout);
    (void)!std::freopen((folder_ / "terminal").c_str(), "a", stderr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  static int status_of(pid_t process) {
    int status = 0;
    ::waitpid(process, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int run(const Words& words) const { return status_of(start(words)); }

  // The processes that `launcher` has started so far, in the order of ranks.
  static std::vector<pid_t> children_of(pid_t launcher) {
    std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", launcher));
    std::vector<pid_t> children;
    for (pid_t child = 0; file >> child;) children.push_back(child);
    return children;
  }

  std::string words_on_terminal() const { return read_file(folder_ / "terminal"); }
  double final_ne(const std::string& name) const {
    return Json::parse(read_file(folder_ / name / "summary.json")).at("eval").at("ne");
  }
  std::string dense(const std::string& name) const {
    return testing::newest_checkpoint(folder_ / name).at("dense.safetensors");
  }

  Path folder_;
};

TEST_F(RankedProcesses, KilledRanksAndOtherWorldSizesTrainTheSameModel) {
  ASSERT_EQ(run(train("alone")), 0);
  RandomStream random{3};
  for (int kill = 0; kill < (kSanitized ? 3 : 10); ++kill) {
    const auto ranks = static_cast<std::size_t>(2 + kill % 3);
    const pid_t launcher = start(with(train("killed"), {"--ranks", std::to_string(ranks)}));
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + random.below(kSanitized ? 6000 : 900)));
    const std::vector<pid_t> children = children_of(launcher);
    if (!children.empty()) ::kill(children[random.below(children.size())], SIGKILL);
    EXPECT_THAT(status_of(launcher), ::testing::AnyOf(0, 1)) << words_on_terminal();
  }
  ASSERT_EQ(run(with(train("killed"), {"--ranks", "2"})), 0) << words_on_terminal();
  EXPECT_NEAR(final_ne("killed"), final_ne("alone"), 1e-5);
  const auto samples = [&](const std::string& name) {
    return Json::parse(read_file(folder_ / name / "summary.json")).at("samples");
  };
  EXPECT_EQ(samples("killed"), samples("alone"));
}

TEST_F(RankedProcesses, TheDoctorMeasuresMessagesBetweenEveryTwo) {
  ASSERT_EQ(run({kProgram, "doctor", "--ranks", "2", "--json"}), 0) << words_on_terminal();
  const std::string words = words_on_terminal();
  const Json found = Json::parse(words.substr(words.find('{')));
  EXPECT_EQ(found.at("ranks"), 2);
  const Json& speeds = found.at("links").at(0).at("bytes_per_second");
  EXPECT_GT(speeds.at(0).at(1).get<double>(), 1e6);
  EXPECT_GT(speeds.at(1).at(0).get<double>(), 1e6);
}

TEST_F(RankedProcesses, ALauncherNamesTheRankThatWasKilled) {
  const pid_t launcher = start(with(train("run"), {"--ranks", "3", "--set", "training.epochs=100000"}));
  while (!fs::exists(folder_ / "run" / "metrics.jsonl"))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(children_of(launcher)[1], SIGKILL);
  EXPECT_EQ(status_of(launcher), 1);
  EXPECT_THAT(words_on_terminal(), HasSubstr("rank 1 was killed by signal 9"));
}

// NCCL's kernels on the other GPU would wait for it until they are killed.
TEST_F(RankedProcesses, ARankThatIsKilledOnGpusEndsTheOthersAtOnce) {
  if (cuda_device_count() < 2) GTEST_SKIP() << "needs two GPUs";
  const pid_t launcher = start(with(train("run"), {"--ranks", "2", "--set", "training.epochs=100000", "--set",
                                                   "device=cuda", "--set", "tables.ranks=split"}));
  while (!fs::exists(folder_ / "run" / "checkpoints" / "current"))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(children_of(launcher)[1], SIGKILL);
  const Clock::time_point killed = Clock::now();
  EXPECT_EQ(status_of(launcher), 1);
  const std::string words = words_on_terminal();
  EXPECT_LT(seconds_since(killed), 8) << words;
  EXPECT_THAT(words, HasSubstr("rank 1 was killed by signal 9"));
  EXPECT_THAT(words, ::testing::Not(HasSubstr("did not end within")));
}

TEST_F(RankedProcesses, AStoppedRankIsNamedAndEndsAll) {
  const pid_t launcher = start(with(train("run"), {"--ranks", "3", "--set", "training.epochs=100000", "--set",
                                                   kSanitized ? "ranks.timeout=30" : "ranks.timeout=4"}));
  while (!fs::exists(folder_ / "run" / "checkpoints" / "current"))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(children_of(launcher)[1], SIGSTOP);
  EXPECT_EQ(status_of(launcher), 1);
  const std::string words = words_on_terminal();
  // The other one may be a collective ahead and wait for both, or wait for rank 0, which asks rank 1 for rows
  // to save.
  EXPECT_THAT(words, ::testing::ContainsRegex(
                         "rank [02] of 3 has waited [0-9]+ s for rank 1 in .* of step [0-9]+, stage "));
  // Of the thread that waits: the one that sums dense gradients has a stack of its own.
  EXPECT_THAT(words, ::testing::AnyOf(HasSubstr("  hstu::as_rank("),
                                      HasSubstr("  hstu::ExchangeQueue::exchange_all(")));
  EXPECT_THAT(words, HasSubstr("it has ended, hangs or was stopped"));
}

TEST_F(RankedProcesses, ARankThatRunsOutOfMemoryEndsAll) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need more addresses than this limit leaves";
  const int port = listen_on("127.0.0.1", 0).port;
  const auto variables = [&](int rank) -> Words {
    return {fmt::format("RANK={}", rank), "WORLD_SIZE=2", "MASTER_ADDR=localhost",
            fmt::format("MASTER_PORT={}", port - 1)};
  };
  const Words command =
      with(train("run"), {"--threads", "1", "--set", "model.head_hidden=65536", "--set", "model.dim=256"});
  const Words limited = with({"sh", "-c", "ulimit -v 300000; exec \"$0\" \"$@\""}, command);
  const pid_t first = start(command, variables(0)), second = start(limited, variables(1));
  EXPECT_EQ(status_of(second), 1);
  EXPECT_EQ(status_of(first), 76);
  EXPECT_THAT(words_on_terminal(), ::testing::ContainsRegex("hstu: rank 1: .*memory"));
  EXPECT_THAT(words_on_terminal(), HasSubstr("hstu: rank 0: rank 1 has ended"));
}

TEST_F(RankedProcesses, ASignalToAnyRankSavesAndEndsAll) {
  const pid_t launcher = start(with(train("run"), {"--ranks", "2", "--set", "training.epochs=100000"}));
  while (!fs::exists(folder_ / "run" / "checkpoints" / "current"))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(children_of(launcher).at(1), SIGTERM);
  EXPECT_EQ(status_of(launcher), 75) << words_on_terminal();
  EXPECT_THAT(words_on_terminal(), HasSubstr("interrupted after"));
}

TEST_F(RankedProcesses, AnErrorOfTheConfigurationIsReportedOnce) {
  EXPECT_EQ(run(with(train("run"), {"--ranks", "3", "--set", "data.path=nowhere"})), 2);
  const std::string words = words_on_terminal();
  EXPECT_NE(words.find("nowhere"), std::string::npos);
  EXPECT_EQ(words.find("nowhere"), words.rfind("nowhere")) << words;
}

// Such a process once trained alone and said nothing.
TEST_F(RankedProcesses, AHalfSetLauncherIsRefusedByTheNameOfTheMissingVariable) {
  const Words all{"WORLD_SIZE=2", "RANK=0", "MASTER_ADDR=localhost", "MASTER_PORT=29511"};
  for (std::size_t missing = 0; missing < all.size(); ++missing) {
    Words set = all;
    set.erase(set.begin() + static_cast<std::ptrdiff_t>(missing));
    std::filesystem::remove(folder_ / "terminal");
    EXPECT_EQ(status_of(start(train("run"), set)), 2);
    const std::string name = all[missing].substr(0, all[missing].find('='));
    EXPECT_THAT(words_on_terminal(), HasSubstr("the launcher's variable " + name + " is missing"));
  }
  EXPECT_EQ(status_of(start(train("run"), {"SLURM_STEP_ID=0", "SLURM_NTASKS=2"})), 2);
  EXPECT_THAT(words_on_terminal(), HasSubstr("variable SLURM_PROCID is missing"));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  // What clusters set for every process does not ask for ranks.
  EXPECT_EQ(status_of(start(train("alone"), {"MASTER_ADDR=localhost", "MASTER_PORT=29511", "WORLD_SIZE=1"})),
            0);
}

TEST_F(RankedProcesses, ASignalEndsARankThatWaitsForOthers) {
  const int port = listen_on("127.0.0.1", 0).port;
  const pid_t first = start(train("run"), {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost",
                                           fmt::format("MASTER_PORT={}", port - 1)});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::kill(first, SIGTERM);
  EXPECT_EQ(status_of(first), 128 + SIGTERM);
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(RankedProcesses, AHangupOfTheTerminalSavesAndEndsAll) {
  const pid_t launcher = start(with(train("run"), {"--ranks", "2", "--set", "training.epochs=100000"}));
  while (!fs::exists(folder_ / "run" / "checkpoints" / "current"))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(launcher, SIGHUP);  // the system and the shell may send it
  ::kill(launcher, SIGHUP);
  EXPECT_EQ(status_of(launcher), 75) << words_on_terminal();
}

TEST_F(RankedProcesses, ASeedThatRankZeroDrawsIsThatOfAllAndOfTheRun) {
  ASSERT_EQ(run(with(train("drawn"), {"--ranks", "2", "--set", "seed=random"})), 0) << words_on_terminal();
  const RunOptions drawn = load_config<RunOptions>(folder_ / "drawn" / "config.toml");
  EXPECT_NE(drawn.seed, kRandomNumber);
  EXPECT_THAT(words_on_terminal(), HasSubstr(fmt::format("seed: {}", drawn.seed)));
  ASSERT_EQ(run(with(train("same"), {"--ranks", "2", "--set", fmt::format("seed={}", drawn.seed)})), 0);
  EXPECT_EQ(dense("same"), dense("drawn"));
  ASSERT_EQ(run(with(train("other"), {"--set", "seed=random"})), 0);
  EXPECT_NE(load_config<RunOptions>(folder_ / "other" / "config.toml").seed, drawn.seed);
  EXPECT_EQ(run(with(train("other"), {"--set", "seed=random"})), 0) << "a run keeps the seed that it drew";
}

TEST_F(RankedProcesses, AContextThatAPlanChoosesIsThatOfTheRunAndStays) {
  const Words set{"--ranks", "2",
                  "--set",   "ranks.context=0",
                  "--set",   "ranks.context_above=4",
                  "--set",   "training.batch_size=1",
                  "--set",   "training.max_steps=2"};
  ASSERT_EQ(run(with(train("chosen"), set)), 0) << words_on_terminal();
  EXPECT_EQ(load_config<RunOptions>(folder_ / "chosen" / "config.toml").ranks.context, 2);
  EXPECT_THAT(words_on_terminal(), HasSubstr("ranks.context: 2 (the rank with the most work has"));
  // A plan would choose 1 now.
  const Words more{"--ranks",        "2",
                   "--set",          "ranks.context=0",
                   "--set",          "ranks.context_above=900",
                   "--allow-change", "ranks.context_above",
                   "--set",          "training.max_steps=3"};
  ASSERT_EQ(run(with(train("chosen"), more)), 0) << words_on_terminal();
  EXPECT_EQ(load_config<RunOptions>(folder_ / "chosen" / "config.toml").ranks.context, 2);
}

TEST_F(RankedProcesses, TorchrunsVariablesGiveTheBitsOfRanks) {
  ASSERT_EQ(run(with(train("ranks"), {"--ranks", "2"})), 0);
  const int port = listen_on("127.0.0.1", 0).port;
  const auto variables = [&](int rank) -> Words {
    return {fmt::format("RANK={}", rank), "WORLD_SIZE=2", "MASTER_ADDR=localhost",
            fmt::format("MASTER_PORT={}", port - 1), "LOCAL_WORLD_SIZE=2"};
  };
  const Words command = train("torchrun");
  const pid_t first = start(command, variables(0)), second = start(command, variables(1));
  EXPECT_EQ(status_of(first), 0) << words_on_terminal();
  EXPECT_EQ(status_of(second), 0) << words_on_terminal();
  EXPECT_EQ(dense("torchrun"), dense("ranks"));
}

TEST_F(RankedProcesses, SlurmsVariablesGiveTheBitsOfRanks) {
  ASSERT_EQ(run(with(train("ranks"), {"--ranks", "2"})), 0);
  const auto variables = [](int rank) -> Words {
    return {fmt::format("SLURM_PROCID={}", rank),
            "SLURM_NTASKS=2",
            "SLURM_STEP_ID=0",
            fmt::format("SLURM_JOB_ID={}", ::getpid()),
            "SLURM_STEP_NODELIST=localhost,elsewhere[1-3]",
            "SLURM_STEP_TASKS_PER_NODE=2"};
  };
  for (const std::string mpi : {"none", "pmix"}) {
    const auto of_rank = [&](int rank) {
      Words all = variables(rank);
      if (mpi == "pmix") {
        all.push_back(fmt::format("PMIX_RANK={}", rank));
        all.insert(all.end(), {"PMIX_NAMESPACE=slurm.pmix.7.0", "SLURM_MPI_TYPE=pmix"});
      }
      return all;
    };
    const Words command = train("slurm, " + mpi);
    const pid_t first = start(command, of_rank(0)), second = start(command, of_rank(1));
    EXPECT_EQ(status_of(first), 0) << words_on_terminal();
    EXPECT_EQ(status_of(second), 0) << words_on_terminal();
    EXPECT_EQ(dense("slurm, " + mpi), dense("ranks"));
  }
}

// The first steps: later ones multiply differences of rounding (docs/ranks.md has the whole run).
TEST_F(RankedProcesses, MovieLensTrainsTheSameModelOnAnyNumberOfRanks) {
  const char* const data = std::getenv("HSTU_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "set HSTU_TEST_DATA to a folder that contains ml-100k/";
  const Path dataset = folder_ / "ml";
  ASSERT_EQ(run({kProgram, "prepare", "movielens", "--input", Path(data) / "ml-100k", "--output", dataset}),
            0)
      << words_on_terminal();
  const auto train_on = [&](const std::string& ranks, const std::string& name) {
    const std::string config = std::string(HSTU_SOURCE_DIR) + "/configs/movielens-100k.toml";
    EXPECT_EQ(run({kProgram, "train", config, "--set", "data.path=" + dataset.string(), "--set",
                   "device=host", "--set", kSanitized ? "training.max_steps=10" : "training.max_steps=60",
                   "--set", kSanitized ? "evaluation.max_samples=300" : "evaluation.max_samples=2000",
                   "--ranks", ranks, "--output", folder_ / name}),
              0)
        << words_on_terminal();
    return Json::parse(read_file(folder_ / name / "summary.json")).at("eval").at("auc").get<double>();
  };
  const double alone = train_on("1", "ml1");
  EXPECT_GT(alone, kSanitized ? 0.4 : 0.6);  // of few steps
  EXPECT_NEAR(train_on("2", "ml2"), alone, 1e-4);
  EXPECT_NEAR(train_on("4", "ml4"), alone, 1e-4);
  train_on("2", "ml2_again");
  EXPECT_EQ(testing::newest_checkpoint(folder_ / "ml2"), testing::newest_checkpoint(folder_ / "ml2_again"));
}

TEST_F(RankedProcesses, MpiGivesTheBitsOfRanks) {
  if (kSanitized) GTEST_SKIP() << "MPI's own leaks would be reported";
  if (!fs::exists(std::string(HSTU_PROGRAM_DIR) + "/libhstu_mpi.so") ||
      std::system("mpirun --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "MPI is not installed";
  ASSERT_EQ(run(with(train("ranks"), {"--ranks", "2"})), 0);
  EXPECT_EQ(run(with({"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"}, train("mpi"))), 0)
      << words_on_terminal();
  EXPECT_EQ(dense("mpi"), dense("ranks"));
}

}  // namespace
}  // namespace hstu
