// A folder of its own for every test.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "hstu/base/files.h"

namespace hstu {

// An empty folder named after the running test; what an earlier run left there is removed.
inline Path temporary_folder() {
  const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string("hstu_") + info->test_suite_name() + "_" + info->name();
  for (char& c : name) {
    if (c == '/') c = '_';  // of parameterised tests
  }
  Path folder = Path(::testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace hstu
