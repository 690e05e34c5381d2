// A limit of this process, for as long as a test needs it.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace hstu::testing {

class ResourceLimit {
 public:
  // Of the kernel's names: RLIMIT_FSIZE, RLIMIT_NOFILE.
  ResourceLimit(decltype(RLIMIT_FSIZE) resource, rlim_t most) : resource_(resource) {
    EXPECT_EQ(getrlimit(resource_, &before_), 0);
    const rlimit limited{most, before_.rlim_max};
    EXPECT_EQ(setrlimit(resource_, &limited), 0);
  }
  ~ResourceLimit() { EXPECT_EQ(setrlimit(resource_, &before_), 0); }
  ResourceLimit(const ResourceLimit&) = delete;
  ResourceLimit& operator=(const ResourceLimit&) = delete;

 private:
  decltype(RLIMIT_FSIZE) resource_;
  rlimit before_{};
};

}  // namespace hstu::testing
