#include "hstu/base/staged_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;
using Existing = StagedFile::Existing;

std::string refusal(const Path& path) {
  try {
    StagedFile second(path, Existing::refuse);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

void put(const StagedFile& file, std::string_view text) {
  OutputFile output(file.temporary());
  output.write(text);
  output.close();
}

std::size_t files_in(const Path& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

TEST(StagedFile, AFileThatAnotherProgramIsWritingIsRefused) {
  const Path folder = temporary_folder(), path = folder / "scores.csv";
  {
    StagedFile first(path, Existing::refuse);
    put(first, "first");
    EXPECT_THAT(refusal(path), HasSubstr("another program is writing " + path.string()));
    first.commit();
  }
  EXPECT_EQ(read_file(path), "first");
  EXPECT_THAT(refusal(path), HasSubstr("already exists"));
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(StagedFile, WhatAKilledProgramLeftIsReplaced) {
  const Path folder = temporary_folder(), path = folder / "scores.csv";
  write_file(path.string() + ".partial", "half of a much longer file");
  StagedFile file(path, Existing::refuse);
  put(file, "whole");
  file.commit();
  EXPECT_EQ(read_file(path), "whole");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(StagedFile, AFileThatAppearedMeanwhileIsKept) {
  const Path folder = temporary_folder(), path = folder / "scores.csv";
  {
    StagedFile file(path, Existing::refuse);
    put(file, "mine");
    write_file(folder / "other", "theirs");
    std::filesystem::rename(folder / "other", path);
    EXPECT_THROW(file.commit(), UsageError);
  }
  EXPECT_EQ(read_file(path), "theirs");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(StagedFile, WithoutCommitNothingIsLeft) {
  const Path folder = temporary_folder();
  { put(StagedFile(folder / "a", Existing::refuse), "x"); }
  { put(StagedFile(folder / "b", Existing::replace), "x"); }
  EXPECT_EQ(files_in(folder), 0u);
}

// Programs that replace one file: each content is whole, whoever is last.
TEST(StagedFile, ProgramsThatReplaceAFileWaitForOneAnother) {
  const Path folder = temporary_folder(), path = folder / "report.html";
  constexpr int kPrograms = 4, kTimes = 50;
  for (int p = 0; p < kPrograms; ++p) {
    if (::fork() != 0) continue;
    int status = 0;
    try {
      for (int i = 0; i < kTimes; ++i)
        write_file(path, std::string(100'000 + 1'000 * p, static_cast<char>('a' + p)));
    } catch (...) {
      status = 1;
    }
    ::_exit(status);
  }
  for (int p = 0; p < kPrograms; ++p) {
    int status = 0;
    ::wait(&status);
    EXPECT_EQ(status, 0);
  }
  const std::string text = read_file(path);
  EXPECT_EQ(text, std::string(100'000 + 1'000 * static_cast<std::size_t>(text[0] - 'a'), text[0]));
  EXPECT_EQ(files_in(folder), 1u);
}

// A probe of another program once removed the file that this one was writing.
TEST(StagedFile, AProbeLeavesTheFileOfAnotherProgram) {
  const Path folder = temporary_folder(), path = folder / "scores.csv";
  StagedFile file(path, Existing::refuse);
  put(file, "mine");
  check_writable(path);
  file.commit();
  EXPECT_EQ(read_file(path), "mine");
}

}  // namespace
}  // namespace hstu
