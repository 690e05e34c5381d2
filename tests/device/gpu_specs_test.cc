#include "hstu/device/gpu_specs.h"

#include <initializer_list>

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(GpuSpecs, KnowsModelsByTheNameThatTheDriverGives) {
  struct Expected {
    const char *name, *capability;
    double bf16, bandwidth;
  };
  for (const Expected& e :
       {Expected{"NVIDIA A100-SXM4-40GB", "8.0", 312e12, 1.555e12},
        {"NVIDIA A100-PCIE-40GB", "8.0", 312e12, 1.555e12},
        {"NVIDIA A100-SXM4-80GB", "8.0", 312e12, 2.039e12},
        {"NVIDIA A100 80GB PCIe", "8.0", 312e12, 1.935e12},
        {"NVIDIA A10", "8.6", 125e12, 600e9},
        {"NVIDIA A30", "8.0", 165e12, 933e9},
        {"NVIDIA L4", "8.9", 121e12, 300e9},
        {"NVIDIA L40S", "8.9", 362.1e12, 864e9},
        {"NVIDIA GeForce RTX 3090", "8.6", 71.2e12, 936e9},
        {"NVIDIA GeForce RTX 4090", "8.9", 165.2e12, 1.008e12},
        {"NVIDIA GeForce RTX 5090", "12.0", 209.5e12, 1.792e12},
        {"NVIDIA H100 80GB HBM3", "9.0", 989.4e12, 3.352e12},
        {"NVIDIA H100 PCIe", "9.0", 756.5e12, 2.039e12},
        {"NVIDIA H100 NVL", "9.0", 835.5e12, 3.938e12},
        {"NVIDIA H200", "9.0", 989.4e12, 4.8e12},
        {"NVIDIA GH200 480GB", "9.0", 989.4e12, 4e12},
        {"NVIDIA B200", "10.0", 2250e12, 7.7e12},
        {"NVIDIA A10G", "8.6", 70e12, 600e9},
        {"NVIDIA L40", "8.9", 181e12, 864e9},
        {"NVIDIA H200 NVL", "9.0", 835.5e12, 4.8e12},
        {"NVIDIA H20", "9.0", 148e12, 4e12},
        {"NVIDIA GB200", "10.0", 2500e12, 8e12},
        {"NVIDIA B300 SXM6 AC", "10.3", 2250e12, 8e12},
        {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0", 503.8e12, 1.792e12}}) {
    const auto specs = gpu_specs(e.name, e.capability);
    ASSERT_TRUE(specs) << e.name;
    EXPECT_NEAR(specs->bf16, e.bf16, 1e6) << e.name;
    EXPECT_EQ(specs->fp16, specs->bf16) << e.name;
    EXPECT_NEAR(specs->memory_bandwidth, e.bandwidth, 1e3) << e.name;
    EXPECT_LT(specs->fp32, specs->bf16) << e.name;
    EXPECT_GE(specs->l2_bytes, 6 << 20) << e.name;
  }
}

TEST(GpuSpecs, HaveFp8RatesOnlyWhereTensorCoresHaveFp8) {
  EXPECT_EQ(gpu_specs("NVIDIA A100-SXM4-40GB", "8.0")->fp8, 0);
  EXPECT_EQ(gpu_specs("NVIDIA H200", "9.0")->fp8, 1979e12);
  EXPECT_EQ(gpu_specs("NVIDIA H200", "9.0")->l2_bytes, 60 << 20);
}

TEST(GpuSpecs, AreNoneRatherThanThoseOfAnotherModel) {
  for (const char* name :
       {"", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA H100", "nvidia h200", "Tesla T4"}) {
    for (const char* capability : {"7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"})
      EXPECT_FALSE(gpu_specs(name, capability)) << name << " " << capability;
  }
}

TEST(GpuSpecs, AreNoneWhereTheComputeCapabilityIsAnothers) {
  EXPECT_FALSE(gpu_specs("NVIDIA H200", "10.0"));
  EXPECT_FALSE(gpu_specs("NVIDIA H200", ""));
}

// The estimate from a data sheet's own multiprocessors and clocks is its rate.
TEST(GpuSpecs, AreEstimatedFromMultiprocessorsAndClocks) {
  struct Known {
    const char *name, *capability;
    GpuClocks clocks;
  };
  for (const Known& known : {Known{"NVIDIA A100-SXM4-80GB", "8.0", {108, 1.41e9, 1.593e9, 5120, 40 << 20}},
                             {"NVIDIA A10", "8.6", {72, 1.695e9, 6.251e9, 384, 6 << 20}},
                             {"NVIDIA L40S", "8.9", {142, 2.52e9, 9.001e9, 384, 96 << 20}},
                             {"NVIDIA H200", "9.0", {132, 1.83e9, 3.125e9, 6144, 60 << 20}}}) {
    const auto sheet = gpu_specs(known.name, known.capability);
    const auto estimate = estimate_specs(known.capability, known.clocks);
    ASSERT_TRUE(sheet && estimate) << known.name;
    EXPECT_TRUE(estimate->estimated && !sheet->estimated) << known.name;
    EXPECT_NEAR(estimate->bf16 / sheet->bf16, 1, 0.03) << known.name;
    EXPECT_NEAR(estimate->fp32 / sheet->fp32, 1, 0.1) << known.name;
    EXPECT_NEAR(estimate->memory_bandwidth / sheet->memory_bandwidth, 1, 0.02) << known.name;
    EXPECT_EQ(estimate->fp8 > 0, sheet->fp8 > 0) << known.name;
  }
  EXPECT_FALSE(estimate_specs("7.5", {40, 1e9, 1e9, 256, 1}));
  EXPECT_FALSE(estimate_specs("9.0", {}));
}

TEST(GpuSpecs, KnowTheLinkToOtherGpus) {
  EXPECT_EQ(gpu_specs("NVIDIA H200", "9.0")->link_bandwidth, 450e9);
  EXPECT_EQ(gpu_specs("NVIDIA L4", "8.9")->link_bandwidth, 32e9);
}

TEST(GpuSpecs, AGpuIsFoundByAPartOfItsName) {
  const auto h200 = find_gpu("h200");
  ASSERT_TRUE(h200);
  EXPECT_EQ(h200->name, "NVIDIA H200");
  EXPECT_EQ(h200->major, 9);
  EXPECT_EQ(h200->multiprocessors, 132);
  EXPECT_EQ(h200->memory_bytes, std::int64_t{141} << 30);
  EXPECT_EQ(find_gpu("h100")->name, "NVIDIA H100 80GB HBM3") << "the one of machines with many";
  EXPECT_EQ(find_gpu("RTX 5090")->major, 12);
  EXPECT_EQ(find_gpu("a10")->name, "NVIDIA A10") << "words before parts of words";
  EXPECT_EQ(find_gpu("b200")->name, "NVIDIA B200");
  EXPECT_EQ(find_gpu("l40")->name, "NVIDIA L40");
  EXPECT_EQ(find_gpu("pro 6000 black")->major, 12);
  EXPECT_FALSE(find_gpu("voodoo"));
  EXPECT_NE(gpu_names().find("NVIDIA H100 NVL, "), std::string::npos);
}

}  // namespace
}  // namespace hstu
