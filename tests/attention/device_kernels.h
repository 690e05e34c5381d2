// Tests that run once for every kernel and head size. They skip on machines whose GPU has no such kernel.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "attention/device_batch.h"

namespace hstu {

struct Kernels {
  AttentionKernel kernel;
  int head_dim;
};

class OnGpu : public ::testing::TestWithParam<Kernels> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU here";
    const AttentionDevice device = cuda::attention_device();
    if (GetParam().kernel == AttentionKernel::hopper && device.major != 9) GTEST_SKIP() << "not a Hopper";
    if (device.major < 8) GTEST_SKIP() << "older than Ampere";
  }
  static DeviceCase with_kernels(DeviceCase c) {
    c.kernel = GetParam().kernel, c.head_dim = GetParam().head_dim;
    return c;
  }
};

inline std::vector<Kernels> all_kernels() {
  std::vector<Kernels> all;
  for (const AttentionKernel kernel : {AttentionKernel::hopper, AttentionKernel::mma})
    for (const int head_dim : {32, 64, 128, 256}) all.push_back({kernel, head_dim});
  return all;
}
inline void PrintTo(const Kernels& kernels, std::ostream* to) {  // in lists of tests, instead of its bytes
  *to << to_string(kernels.kernel) << kernels.head_dim;
}
inline std::string name_of(const ::testing::TestParamInfo<Kernels>& test) {
  return ::testing::PrintToString(test.param);
}

}  // namespace hstu
