#include "hstu/experiment/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

TEST(DeviceChoice, AutoIsTheFirstGpuOrSaysWhyNot) {
  const DeviceChoice choice = choose_device("auto");
  EXPECT_EQ(choice.device, cuda_device_count() > 0 ? Device::cuda(0) : Device::host());
  EXPECT_THAT(choice.why, ::testing::StartsWith(cuda_device_count() > 0 ? "the first GPU" : "no GPU: "));
}

TEST(DeviceChoice, WhatIsAskedForIsTakenOrRefused) {
  EXPECT_EQ(choose_device("host").device, Device::host());
  EXPECT_THROW(choose_device("gpu"), UsageError);
  EXPECT_THROW(choose_device("cuda:1000"), Error);
}

TEST(DeviceChoice, TheHostHasNoKernelsToChoose) {
  RunOptions options;
  options.device = "host";
  EXPECT_NO_THROW(choose_device(options));
  options.attention = AttentionChoice::plain;
  try {
    choose_device(options);
    ADD_FAILURE() << "not refused";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("attention = \"plain\" needs a GPU"));
  }
}

}  // namespace
}  // namespace hstu
