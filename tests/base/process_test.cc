#include "hstu/base/process.h"

#include <filesystem>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/files.h"
#include "hstu/base/json.h"
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
