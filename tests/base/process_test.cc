#include "hstu/base/process.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/files.h"
#include "hstu/base/json.h"
#include "hstu/base/mapped_ranges.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::Not;

// Reads the last byte of a mapped file after the file was emptied.
[[noreturn]] void read_what_is_gone(const Path& path) {
  prepare_process();
  const MappedFile file(path);
  std::filesystem::resize_file(path, 0);
  const volatile std::byte* const last = &file.bytes().back();
  std::exit(static_cast<int>(*last));
}

TEST(ProcessDeathTest, AMappedFileThatShrinksEndsTheProgramWithItsName) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const Path path = temporary_folder() / "item.npy";
  write_file(path, std::string(20'000, 'x'));
  EXPECT_EXIT(read_what_is_gone(path), testing::ExitedWithCode(1), "item.npy: became shorter");
}

// As the last byte of a program that goes on.
[[noreturn]] void survive_what_is_gone(const Path& path) {
  prepare_process();
  survive_lost_pages();
  const MappedFile file(path);
  std::filesystem::resize_file(path, 0);
  const volatile std::byte* const last = &file.bytes().back();
  const bool is_zero = *last == std::byte{0};
  std::exit(is_zero && lost_pages() == 1 && lost_file(path.parent_path()) == path &&
                    lost_file("/else").empty()
                ? 0
                : 1);
}

TEST(ProcessDeathTest, AProgramThatSurvivesLostPagesKnowsTheirFile) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const Path path = temporary_folder() / "item.npy";
  write_file(path, std::string(20'000, 'x'));
  EXPECT_EXIT(survive_what_is_gone(path), testing::ExitedWithCode(0), "");
}

TEST(Process, AMappedFileThatIsKeptInMemoryMayShrink) {
  const Path folder = temporary_folder(), kept = folder / "names.npy", other = folder / "item.npy";
  for (const Path& path : {kept, other}) write_file(path, std::string(20'000, 'x'));
  const MappedFile file(kept);
  const MappedFile mapped(other);
  keep_in_memory(folder, [&](const std::string& path) { return path == kept; });
  for (const Path& path : {kept, other}) {
    std::ofstream(path, std::ios::in).write("yy", 2);  // in place
    if (path == kept) std::filesystem::resize_file(path, 5);
  }
  EXPECT_EQ(file.bytes().front(), std::byte{'x'});
  EXPECT_EQ(file.bytes().back(), std::byte{'x'});
  EXPECT_EQ(mapped.bytes().front(), std::byte{'y'});
}

// What the library itself says of an exception.
template <typename Body>
std::string words_after(const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return words_of(error);
  }
  return "";
}

TEST(Process, SaysNothingOfALibrary) {
  EXPECT_EQ(words_after([] { [[maybe_unused]] const auto size = std::filesystem::file_size("/nowhere/x"); }),
            "/nowhere/x: No such file or directory");
  EXPECT_THAT(words_after([] { std::string().reserve(std::string().max_size() + 1); }),
              testing::HasSubstr("longer than any memory"));
  EXPECT_THAT(words_after([] { Json::parse("{}").at("format"); }), Not(testing::HasSubstr("[json")));
}

}  // namespace
}  // namespace hstu
