// hstu-prepare as a program: exit status, messages, and what is left when it is stopped.
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hstu/base/child_processes.h"
#include "hstu/dataset/manifest.h"
#include "sanitizers.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr rlim_t kNoLimit = RLIM_INFINITY;

// Starts hstu-prepare with its output in `output`, with what it says of its work in `errors` if given; no
// file it writes may outgrow `file_limit` bytes.
pid_t start(std::vector<std::string> words, const Path& output, rlim_t file_limit = kNoLimit,
            const Path& errors = {}) {
  words.insert(words.begin(), HSTU_PROGRAM_DIR "/hstu-prepare");
  const std::vector<char*> arguments = argument_pointers(words);
  const int descriptor = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(descriptor, STDOUT_FILENO);
    ::dup2(errors.empty() ? descriptor : ::open(errors.c_str(), O_WRONLY), STDERR_FILENO);
    const rlimit limit{file_limit, file_limit};
    if (file_limit != kNoLimit) ::setrlimit(RLIMIT_FSIZE, &limit);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(descriptor);
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

struct Result {
  int exit_status;
  std::string text;
};

Result run(std::vector<std::string> words, const Path& folder, rlim_t file_limit = kNoLimit) {
  const Path output = folder / "output.txt";
  const int status = wait_for(start(std::move(words), output, file_limit));
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(output)};
}

// Ratings enough for columns of some kilobytes.
Path write_ratings(const Path& folder) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += fmt::format("{}\t{}\t{}\t{}\n", i % 50, i % 77, 1 + i % 5, i);
  write_file(folder / "u.data", text);
  return folder;
}

std::vector<std::string> movielens(const Path& input, const Path& output) {
  return {"movielens", "--input", input.string(), "--output", output.string()};
}

TEST(PrepareProgram, PreparesAndEndsWithATable) {
  const Path folder = write_ratings(temporary_folder());
  const Result result = run(movielens(folder, folder / "ds"), folder);
  EXPECT_EQ(result.exit_status, 0) << result.text;
  EXPECT_THAT(result.text, AllOf(HasSubstr("users      50\n"), HasSubstr("items      77\n"),
                                 HasSubstr("events     5,000\n"), HasSubstr("bytes per event")));
  EXPECT_EQ(read_manifest(folder / "ds").counts.events, 5000);
}

TEST(PrepareProgram, ProposesNegativesWhereTheLogHasNone) {
  const Path folder = temporary_folder();
  write_file(folder / "events.csv", "user,item,time\n1,5,100\n1,6,200\n2,5,150\n");
  write_file(
      folder / "schema.toml",
      "name = \"clicks\"\nfiles = [\"events.csv\"]\nuser = \"user\"\nitem = \"item\"\ntime = \"time\"\n"
      "integers = [\"user\", \"item\"]\nlabel = \"click\"\npools = [\"click\"]\n"
      "[[action]]\nname = \"click\"\nbit = 1\nwhen = []\n");
  const auto words = [&](const char* output) -> std::vector<std::string> {
    return {"csv",           "--schema", (folder / "schema.toml").string(), "--input",
            folder.string(), "--output", (folder / output).string()};
  };
  const Result positives = run(words("clicks"), folder);
  EXPECT_EQ(positives.exit_status, 0) << positives.text;
  EXPECT_THAT(positives.text, AllOf(HasSubstr("The log has positives alone"), HasSubstr("data.negatives")));
  const Path ratings = write_ratings(folder);
  EXPECT_THAT(run(movielens(ratings, folder / "both"), folder).text,
              testing::Not(HasSubstr("positives alone")));
}

// Ratings are not in order of user and time, which it says; and it shows how far it is.
TEST(PrepareProgram, WhatCannotBeToldIsNoReasonToStop) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "/dev/full does not exist";
  const Path folder = write_ratings(temporary_folder());
  const int status =
      wait_for(start(movielens(folder, folder / "ds"), folder / "output.txt", kNoLimit, "/dev/full"));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << read_file(folder / "output.txt");
  EXPECT_EQ(read_manifest(folder / "ds").counts.events, 5000);
}

TEST(PrepareProgram, GivesTheSameDatasetWithAnyNumberOfThreads) {
  const Path folder = write_ratings(temporary_folder());
  for (const char* threads : {"1", "3"}) {
    std::vector<std::string> words = movielens(folder, folder / threads);
    words.insert(words.end(), {"--threads", threads});
    EXPECT_EQ(run(words, folder).exit_status, 0);
  }
  EXPECT_EQ(read_file(folder / "1" / kManifestFile), read_file(folder / "3" / kManifestFile));
}

TEST(PrepareProgram, EndsWithStatus2WhenTheWordsAreWrong) {
  const Path folder = write_ratings(temporary_folder());
  EXPECT_EQ(run({}, folder).exit_status, 2);
  EXPECT_EQ(run({"spotify"}, folder).exit_status, 2);
  EXPECT_EQ(run({"movielens", "--input", folder.string()}, folder).exit_status, 2);
  EXPECT_EQ(run(movielens(folder / "none", folder / "ds"), folder).exit_status, 2);
  std::filesystem::create_directories(folder / "empty");
  const Result empty = run(movielens(folder / "empty", folder / "ds"), folder);
  EXPECT_EQ(empty.exit_status, 2);
  EXPECT_THAT(empty.text, HasSubstr("no MovieLens ratings"));
  const Result exists = run(movielens(folder, folder / "empty"), folder);
  EXPECT_EQ(exists.exit_status, 2);
  EXPECT_THAT(exists.text, HasSubstr("already exists"));
}

TEST(PrepareProgram, EndsWithStatus1WhenTheDataAreWrong) {
  const Path folder = temporary_folder();
  write_file(folder / "u.data", "1\t2\t3\n");
  const Result result = run(movielens(folder, folder / "ds"), folder);
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.text, HasSubstr("u.data: line 1"));
  EXPECT_FALSE(std::filesystem::exists(folder / "ds"));
}

TEST(PrepareProgram, TeachesWithAnExample) {
  const Path folder = temporary_folder();
  for (const char* command : {"yambda", "movielens", "parquet"}) {
    const Result help = run({command, "--help"}, folder);
    EXPECT_EQ(help.exit_status, 0);
    EXPECT_THAT(help.text, HasSubstr(fmt::format("Example:\n  hstu prepare {}", command)));
  }
}

TEST(PrepareProgram, LeavesNothingWhenTheDiskIsFull) {
  if (kThreadSanitized) GTEST_SKIP() << "the limit meets the sanitizer's own memory first";
  const Path folder = write_ratings(temporary_folder());
  const Result result = run(movielens(folder, folder / "ds"), folder, 4096);
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.text,
              AllOf(HasSubstr("cannot write"), HasSubstr(".npy"), HasSubstr("limit on file sizes")));
  EXPECT_FALSE(std::filesystem::exists(folder / "ds"));
  EXPECT_FALSE(std::filesystem::exists(folder / "ds.partial"));
  EXPECT_EQ(run(movielens(folder, folder / "ds"), folder).exit_status, 0);
  const Path index = folder / "ds/anchors/m5_w0/training.npy";  // the largest file, and the last
  const auto limit = static_cast<std::int64_t>(std::filesystem::file_size(index)) - 1;
  const Result later = run(movielens(folder, folder / "other"), folder, limit);
  EXPECT_EQ(later.exit_status, 1);
  EXPECT_THAT(later.text, AllOf(HasSubstr("training.npy"), HasSubstr("limit on file sizes")));
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
  EXPECT_FALSE(std::filesystem::exists(folder / "other.partial"));
}

// The ratings take seconds to read, and the signal comes as soon as the output appears. Returns the program's
// wait status.
int stop_at_work(const Path& folder, int signal) {
  constexpr int kTimes = 1000;
  const std::string block = read_file(write_ratings(folder) / "u.data");
  OutputFile ratings(folder / "u.data");
  for (int i = 0; i < kTimes; ++i) ratings.write(block);
  ratings.flush();
  const pid_t child = start(movielens(folder, folder / "ds"), folder / "output.txt");
  constexpr int kPatience = 30'000;
  for (int i = 0; i < kPatience && !std::filesystem::exists(folder / "ds.partial"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "ds.partial"));
  ::kill(child, signal);
  return wait_for(child);
}

TEST(PrepareProgram, RefusesAnOutputThatAnotherRunIsMaking) {
  const Path folder = write_ratings(temporary_folder());
  const StagedFolder other(folder / "ds");
  const Result result = run(movielens(folder, folder / "ds"), folder);
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.text, HasSubstr("another program is writing"));
  EXPECT_TRUE(std::filesystem::exists(other.path()));
}

TEST(PrepareProgram, TakesItsMemoryInUnitsAndRefusesTooLittle) {
  const Path folder = write_ratings(temporary_folder());
  std::vector<std::string> words = movielens(folder, folder / "ds");
  words.insert(words.end(), {"--memory", "512MiB"});
  EXPECT_EQ(run(words, folder).exit_status, 0);
  words.back() = "1MiB";
  const Result little = run(words, folder);
  EXPECT_EQ(little.exit_status, 2);
  EXPECT_THAT(little.text, HasSubstr("--memory"));
}

TEST(PrepareProgram, LeavesNothingThatLooksWholeWhenItIsStopped) {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    const Path folder = temporary_folder();
    const int status = stop_at_work(folder, signal);
    EXPECT_FALSE(std::filesystem::exists(folder / "ds"));
    EXPECT_FALSE(std::filesystem::exists(folder / "ds.partial" / kManifestFile));
    if (signal == SIGKILL) {
      EXPECT_TRUE(WIFSIGNALED(status));
    } else {
      EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
      EXPECT_FALSE(std::filesystem::exists(folder / "ds.partial"));
      EXPECT_THAT(read_file(folder / "output.txt"), HasSubstr("the unfinished output was removed"));
    }
    write_ratings(folder);
    const Result again = run(movielens(folder, folder / "ds"), folder);
    EXPECT_EQ(again.exit_status, 0);
    EXPECT_EQ(again.text.find("the unfinished output of an interrupted run") != std::string::npos,
              signal == SIGKILL)
        << again.text;
    EXPECT_FALSE(std::filesystem::exists(folder / "ds.partial"));
  }
}

}  // namespace
}  // namespace hstu
