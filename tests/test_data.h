// Real data for tests, which is no part of the repository.
#pragma once

#include <cstdlib>

#include "hstu/base/files.h"

namespace hstu {

// The file or folder `name` of the folder that the environment names; "" if there is none.
inline Path test_data(const char* name) {
  const char* const data = std::getenv("HSTU_TEST_DATA");
  if (data == nullptr || !std::filesystem::exists(Path(data) / name)) return {};
  return Path(data) / name;
}

}  // namespace hstu

// Ends a test that needs the file or folder; the variable `path` is its place.
#define HSTU_NEEDS_DATA(path, name)              \
  const hstu::Path path = hstu::test_data(name); \
  if (path.empty()) GTEST_SKIP() << "set HSTU_TEST_DATA to a folder that contains " << (name)
