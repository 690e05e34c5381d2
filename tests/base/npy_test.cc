#include "hstu/base/npy.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(Npy, RoundTripsAColumn) {
  const Path path = Path(testing::TempDir()) / "column.npy";
  write_npy(path, std::vector<std::int64_t>{3, -1, 1LL << 40});
  const NpyColumn<std::int64_t> column(path);
  ASSERT_EQ(column.size(), 3);
  EXPECT_EQ(column[2], 1LL << 40);
}

TEST(Npy, RefusesATornFileByName) {
  const Path path = Path(testing::TempDir()) / "torn.npy";
  write_npy(path, std::vector<std::int64_t>{1, 2, 3});
  std::filesystem::resize_file(path, 140);
  try {
    NpyColumn<std::int64_t> column(path);
    FAIL() << "a torn file was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("torn.npy"), std::string::npos) << error.what();
  }
}

TEST(Npy, RefusesAnotherElementType) {
  const Path path = Path(testing::TempDir()) / "float.npy";
  write_npy(path, std::vector<float>{1.0f});
  EXPECT_THROW(NpyColumn<std::int64_t>{path}, Error);
}

}  // namespace
}  // namespace hstu
