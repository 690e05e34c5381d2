#include "hstu/device/device.h"

#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

TEST(Device, ReadsWhatItWrites) {
  for (const Device device : {Device::host(), Device::cuda(0), Device::cuda(7), Device::cuda(12)}) {
    EXPECT_EQ(parse_device(to_string(device)), device);
  }
  EXPECT_EQ(to_string(Device::host()), "host");
  EXPECT_EQ(to_string(Device::cuda(1)), "cuda:1");
  EXPECT_EQ(parse_device("cuda"), Device::cuda(0));
  EXPECT_NE(Device::cuda(0), Device::host());
}

TEST(Device, RefusesOtherWords) {
  for (const char* word :
       {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda: 1", "cuda1", "Host", "cuda:99999999999"}) {
    EXPECT_THROW(parse_device(word), UsageError) << word;
  }
}

#ifndef HSTU_WITH_CUDA
TEST(Device, ABuildWithoutCudaSaysSo) {
  EXPECT_EQ(cuda_device_count(), 0);
  EXPECT_THROW(make_current(Device::cuda(0)), Error);
  EXPECT_NO_THROW(make_current(Device::host()));
}
#endif

}  // namespace
}  // namespace hstu
