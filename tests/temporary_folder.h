// A folder of its own for every test.
#pragma once

#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "hstu/base/files.h"

namespace hstu {

// The parent of the temporary folders of this process. Two processes may run the same test at the same time.
// It is removed when the process ends, unless a test failed.
class TemporaryFolders {
 public:
  static const Path& parent() {
    static const TemporaryFolders instance;
    return instance.parent_;
  }
  ~TemporaryFolders() {
    const bool own = ::getpid() == process_;  // not that of a child that a test forked
    if (own && !::testing::UnitTest::GetInstance()->Failed()) {
      std::error_code ignored;
      std::filesystem::remove_all(parent_, ignored);
    }
  }
  TemporaryFolders(const TemporaryFolders&) = delete;
  TemporaryFolders& operator=(const TemporaryFolders&) = delete;

 private:
  TemporaryFolders() = default;

  const pid_t process_ = ::getpid();
  const Path parent_ = Path(::testing::TempDir()) / ("hstu_test_" + std::to_string(process_));
};

// An empty folder named after the running test; what an earlier run left there is removed.
inline Path temporary_folder() {
  const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "_" + info->name();
  for (char& c : name) {
    if (c == '/') c = '_';  // of parameterised tests
  }
  Path folder = TemporaryFolders::parent() / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace hstu
