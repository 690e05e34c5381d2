#include "hstu/base/glob.h"

#include <vector>

#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace hstu {
namespace {

TEST(Glob, FindsFilesInByteOrderWhateverTheNamesOfFolderAndFilesAre) {
  const Path folder = temporary_folder() / "[a]*\\";
  std::filesystem::create_directories(folder / "day=1");
  for (const char* const name : {"b.csv", "a.csv", ".c.csv", "a?.txt", "ab.txt", "day=1/d.csv"})
    write_file(folder / name, "");
  EXPECT_EQ(glob_files(folder, "*.csv"), (std::vector<Path>{folder / "a.csv", folder / "b.csv"}));
  EXPECT_EQ(glob_files(folder, "day=*/?.csv"), (std::vector<Path>{folder / "day=1/d.csv"}));
  EXPECT_EQ(glob_files(folder, glob_escaped("a?.txt")), (std::vector<Path>{folder / "a?.txt"}));
  EXPECT_TRUE(glob_files(folder, "none*").empty());
}

}  // namespace
}  // namespace hstu
