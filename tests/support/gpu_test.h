// A test on the first GPU, skipped where there is none.
#pragma once

#include <gtest/gtest.h>

#include "hstu/device/device.h"
#include "hstu/tensor/context.h"

namespace hstu::testing {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    gpu_ = make_context(Device::cuda(0));
  }
  Context gpu_;
};

}  // namespace hstu::testing
