// The commands of docs/own-data.md, as they are printed there.
#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/files.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

// The lines of fenced blocks that start hstu.
std::vector<std::string> commands_of(const Path& document) {
  std::vector<std::string> commands;
  std::istringstream lines(read_file(document));
  bool fenced = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced && line.starts_with("hstu ")) commands.push_back(line);
  }
  return commands;
}

TEST(OwnData, TheDocumentsCommandsLeadFromALogToNamedLists) {
  const Path folder = temporary_folder();
  const std::vector<std::string> commands = commands_of(Path(HSTU_SOURCE_DIR) / "docs" / "own-data.md");
  ASSERT_EQ(commands.size(), 6u);  // the log, then five
  for (const std::string& command : commands) {
    std::string words = command;
    // A few steps teach enough for this test.
    if (words.starts_with("hstu train"))
      words += " --set training.max_steps=30 --set evaluation.every_data_fraction=0";
    if (words.starts_with("hstu predict")) {
      const std::string user = "zcat logs/events-00000.csv.gz | sed -n 2p | cut -d, -f1";
      ASSERT_EQ(std::system(fmt::format("cd {} && echo user,time,device >requests.csv && echo "
                                        "\"$({}),1717200000,phone\" >>requests.csv",
                                        folder.string(), user)
                                .c_str()),
                0);
    }
    const std::string line = fmt::format("cd {} && PATH={}:$PATH && {{ {}; }} >>words 2>&1", folder.string(),
                                         HSTU_PROGRAM_DIR, words);
    ASSERT_EQ(std::system(line.c_str()), 0) << command << '\n' << read_file(folder / "words");
  }
  const std::string top = read_file(folder / "top.csv");
  EXPECT_EQ(std::count(top.begin(), top.end(), '\n'), 11) << top;
  EXPECT_THAT(top, ::testing::HasSubstr(" no. "));  // a product's name
}

}  // namespace
}  // namespace hstu
