#include "hstu/columns/parquet_text.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "columns/parquet_files.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

TEST(ParquetText, WritesUuidsWholeDoublesAndNullsWithoutATypeAsEventsAreRead) {
  const Path folder = temporary_folder();
  arrow::FixedSizeBinaryBuilder uuids(arrow::fixed_size_binary(16));
  ASSERT_TRUE(uuids.Append("\x0b\x8b\xb3\xa1\x6c\x1b\x4a\xd6\xa0\xf8\x6e\x9f\x1c\x6f\x4f\x5e").ok());
  write_parquet(folder / "q.parquet", {{"user", uuids.Finish().ValueOrDie()},
                                       {"item", array<arrow::DoubleType>({7.0})},
                                       {"device", std::make_shared<arrow::NullArray>(1)}});
  const Path csv = folder / "q.csv";
  const int descriptor = ::open(csv.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  write_as_csv(folder / "q.parquet", 1, descriptor);
  ::close(descriptor);
  EXPECT_EQ(read_file(csv), "user,item,device\n0b8bb3a1-6c1b-4ad6-a0f8-6e9f1c6f4f5e,7,\n");
}

}  // namespace
}  // namespace hstu
