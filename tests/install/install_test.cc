// `cmake --install`, on which ./dev install and ./dev package rest: what it writes works without this
// checkout, wherever it is moved, and can be removed.
#include <filesystem>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "command.h"
#include "hstu/base/text.h"
#include "sanitizers.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The installed tree, moved away from where it was written to.
class Install : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Path folder = Path(testing::TempDir()) / fmt::format("hstu_install_{}", ::getpid());
    const Path written = folder / "written";
    tree() = folder / "moved";
    const CommandResult installed = run_command(
        fmt::format("cmake --install {} --prefix {} --strip", HSTU_PROGRAM_DIR, written.string()));
    ASSERT_EQ(installed.exit_status, 0) << installed.text;
    std::filesystem::rename(written, tree());
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(tree().parent_path()); }

  static Path& tree() {
    static Path path;
    return path;
  }
  // In an empty folder, with nothing in the environment but the PATH.
  static CommandResult run(const std::string& command) {
    const Path folder = temporary_folder();
    return run_command(fmt::format("cd {} && env -i PATH={}/bin:/usr/bin:/bin {}", folder.string(),
                                   tree().string(), command));
  }
};

std::set<std::string> files_under(const Path& folder) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (!entry.is_directory()) files.insert(entry.path().lexically_relative(folder).string());
  return files;
}

TEST_F(Install, RunsWithNothingButGlibcAndItself) {
  const CommandResult result =
      run_command(fmt::format("{}/tools/check-package {}", HSTU_SOURCE_DIR, tree().string()));
  EXPECT_EQ(result.exit_status, 0) << result.text;
}

TEST_F(Install, HasALibraryAndAHeaderForProgramsInC) {
  if (kSanitized) GTEST_SKIP() << "the library of a build with a sanitizer is no program's of its own";
  const Path program = temporary_folder() / "score";
  const CommandResult built = run_command(
      fmt::format("cc -std=c11 -I{0}/include {1}/examples/score_c.c -o {2} -L{0}/lib -lhstu_score "
                  "-Wl,-rpath,{0}/lib -Wl,--no-undefined",
                  tree().string(), HSTU_SOURCE_DIR, program.string()));
  ASSERT_EQ(built.exit_status, 0) << built.text;
  EXPECT_THAT(run_command("env -i " + program.string() + " nowhere").text,
              HasSubstr("score_c: nowhere is not a run"));
}

TEST_F(Install, FindsItsPartsThroughThePath) {
  EXPECT_THAT(run("hstu --version").text, AllOf(HasSubstr("hstu "), HasSubstr("commit"), HasSubstr("CUDA")));
  EXPECT_THAT(run("hstu help prepare yambda").text, HasSubstr("hstu prepare yambda [OPTIONS]"));
  EXPECT_THAT(run("hstu doctor").text, HasSubstr((tree() / "share/hstu/configs").string()));
}

TEST_F(Install, TakesAnInstalledConfigurationByItsName) {
  const CommandResult result = run("hstu train quickstart.toml --set data.path=nowhere --output run");
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.text, AllOf(HasSubstr("share/hstu/configs/quickstart.toml"), HasSubstr("nowhere")));
  EXPECT_THAT(run("hstu train none.toml --output run").text, HasSubstr("none.toml"));
}

TEST_F(Install, HasManualPagesOfEveryCommand) {
  const Path pages = tree() / "share/man/man1";
  EXPECT_THAT(read_file(pages / "hstu-train.1"), HasSubstr("\\-\\-resume"));
  EXPECT_THAT(read_file(pages / "hstu-prepare.1"), HasSubstr("hstu prepare yambda"));
  for (const std::string& line : split(run("hstu complete ''").text, '\n')) {
    if (line.empty()) continue;
    const std::string command = line.substr(0, line.find('\t'));
    EXPECT_TRUE(std::filesystem::exists(pages / ("hstu-" + command + ".1"))) << command;
  }
}

TEST_F(Install, CompletesInBash) {
  const std::string script = (tree() / "share/bash-completion/completions/hstu").string();
  const auto completed = [&](const std::string& words) {
    return run(fmt::format(
                   "bash -c '. {}; COMP_WORDS=({}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _hstu hstu; "
                   "echo \"${{COMPREPLY[*]}}\"'",
                   script, words))
        .text;
  };
  EXPECT_EQ(completed("hstu tr"), "train\n");
  EXPECT_EQ(completed("hstu train --res"), "--resume\n");
  EXPECT_EQ(completed("hstu prepare mov"), "movielens\n");
  EXPECT_EQ(completed("hstu train --output x"), "\n");
}

TEST_F(Install, ListsItsFilesSoThatUninstallRemovesThemAlone) {
  const Path copy = temporary_folder() / "copy";
  std::filesystem::copy(
      tree(), copy, std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  std::set<std::string> listed;
  for (const std::string& line : split(read_file(copy / "share/hstu/files.txt"), '\n'))
    if (!line.empty()) listed.insert(line);
  EXPECT_EQ(listed, files_under(copy));
  write_file(copy / "share/hstu/configs/own.toml", "seed = 1\n");
  const std::string uninstall = fmt::format("{}/dev uninstall --prefix {}", HSTU_SOURCE_DIR, copy.string());
  const CommandResult removed = run_command(uninstall);
  EXPECT_EQ(removed.exit_status, 0) << removed.text;
  EXPECT_EQ(files_under(copy), std::set<std::string>{"share/hstu/configs/own.toml"});
  EXPECT_FALSE(std::filesystem::exists(copy / "bin"));
  EXPECT_EQ(run_command(uninstall).exit_status, 1) << "nothing is left to remove";
}

}  // namespace
}  // namespace hstu
