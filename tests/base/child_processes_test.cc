#include "hstu/base/child_processes.h"

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

// The children are this test program with words of GoogleTest.
ChildCommand listing(const Path& output, const std::string& filter) {
  return {{"--gtest_list_tests", "--gtest_filter=" + filter}, output};
}

TEST(ChildProcesses, AllRunAndTheirWordsAreKept) {
  const Path folder = temporary_folder();
  std::vector<ChildCommand> commands;
  for (int i = 0; i < 5; ++i) commands.push_back(listing(folder / std::to_string(i), "ChildProcesses.*"));
  std::vector<int> statuses(commands.size(), -1);
  std::size_t at_work = 0, most = 0;
  const bool all = run_children(
      commands, 2, [&](std::size_t) { most = std::max(most, ++at_work); },
      [&](std::size_t i, int status) {
        --at_work;
        statuses[i] = status;
      });
  EXPECT_TRUE(all);
  EXPECT_EQ(most, 2u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(statuses[static_cast<std::size_t>(i)], 0);
    EXPECT_NE(read_file(folder / std::to_string(i)).find("AllRunAndTheirWordsAreKept"), std::string::npos);
  }
}

TEST(ChildProcesses, AnOutputThatCannotBeWrittenFailsTheChildAlone) {
  const Path folder = temporary_folder();
  std::vector<int> statuses(2, -1);
  const std::vector<ChildCommand> commands{listing("/proc/nowhere", "x"), listing(folder / "out", "x")};
  run_children(
      commands, 1, [](std::size_t) {}, [&](std::size_t i, int status) { statuses[i] = status; });
  EXPECT_NE(statuses[0], 0);
  EXPECT_EQ(statuses[1], 0);
}

}  // namespace
}  // namespace hstu
