#include "hstu/arguments/size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hstu {
namespace {

using ::testing::HasSubstr;

std::int64_t bytes_of(std::string_view word) {
  const auto size = parse_size(word);
  return size ? size->bytes() : -1;
}

TEST(Size, IsANumberWithAUnit) {
  EXPECT_EQ(bytes_of("0"), 0);
  EXPECT_EQ(bytes_of("1000000"), 1'000'000);
  EXPECT_EQ(bytes_of("12B"), 12);
  EXPECT_EQ(bytes_of("512MiB"), 512 << 20);
  EXPECT_EQ(bytes_of("512 mib"), 512 << 20);
  EXPECT_EQ(bytes_of("1.5GiB"), 3LL << 29);
  EXPECT_EQ(bytes_of("2G"), 2LL << 30);
  EXPECT_EQ(bytes_of("300MB"), 300'000'000);
  EXPECT_EQ(bytes_of("1kB"), 1000);
  EXPECT_EQ(bytes_of("0.5TiB"), 1LL << 39);
}

TEST(Size, IsNothingElse) {
  for (const char* word : {"", "MiB", "-1", "-1MiB", "1.2.3", "1e9", "nan", "lots", "1 XiB", "1MiBs",
                           "1  MiB", "99999999999TiB", "0x10"}) {
    EXPECT_EQ(bytes_of(word), -1) << word;
  }
}

// What CLI11 says of `--memory WORD` between 192 MiB and 1 PiB; "" if it is taken, with the bytes in
// `memory`.
std::string complaint(const std::string& word, std::uint64_t* memory = nullptr) {
  CLI::App app;
  std::uint64_t bytes = 0;
  app.add_option("--memory", bytes)->transform(size_between(192LL << 20, 1LL << 50));
  try {
    app.parse(std::vector<std::string>{word, "--memory"});
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  if (memory != nullptr) *memory = bytes;
  return "";
}

TEST(Size, BoundsAreNamedInTheUnitThatWasWritten) {
  EXPECT_THAT(complaint("10MiB"), HasSubstr("--memory: expected between 192 MiB and 1.0 PiB, found 10MiB"));
  EXPECT_THAT(complaint("0.1GiB"), HasSubstr("between 0.1875 GiB and"));
  EXPECT_THAT(complaint("5"), HasSubstr("between 201,326,592 bytes and"));
  EXPECT_THAT(complaint("2000TiB"), HasSubstr("and 1024 TiB, found 2000TiB"));
  EXPECT_THAT(complaint("lots"), HasSubstr("--memory: expected a size such as 512MiB or 1.5GiB, found lots"));
  std::uint64_t memory = 0;
  EXPECT_EQ(complaint("1.5GiB", &memory), "");
  EXPECT_EQ(memory, 3ULL << 29);
}

}  // namespace
}  // namespace hstu
