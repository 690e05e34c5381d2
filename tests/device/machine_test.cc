#include "hstu/device/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hstu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Machine, ReadsAProcessorOfTwoCoresAndFourThreads) {
  std::string text;
  for (int i = 0; i < 4; ++i) {
    text += "processor\t: " + std::to_string(i) +
            "\nmodel name\t: Some CPU @ 2.0GHz\nphysical id\t: 0\ncore id\t\t: " + std::to_string(i % 2) +
            "\nflags\t\t: fpu sse4_2 fma f16c avx2 bmi2 avx512f amx_tile xyz\n\n";
  }
  const Cpu cpu = parse_cpuinfo(text);
  EXPECT_EQ(cpu.model, "Some CPU @ 2.0GHz");
  EXPECT_EQ(cpu.logical_cores, 4);
  EXPECT_EQ(cpu.physical_cores, 2);
  EXPECT_THAT(cpu.instruction_sets,
              ElementsAre("sse4_2", "f16c", "bmi2", "fma", "avx2", "avx512f", "amx_tile"));
  EXPECT_TRUE(cpu.is_new_enough);
}

TEST(Machine, ReadsAnArmProcessor) {
  const Cpu cpu =
      parse_cpuinfo("processor\t: 0\nFeatures\t: fp asimd sve\n\nprocessor\t: 1\nFeatures\t: fp asimd sve\n");
  EXPECT_EQ(cpu.physical_cores, 2);
  EXPECT_THAT(cpu.instruction_sets, ElementsAre("asimd", "sve"));
}

#if defined(__x86_64__)
TEST(Machine, AProcessorWithoutAvx2IsTooOld) {
  EXPECT_FALSE(parse_cpuinfo("processor\t: 0\nflags\t: sse4_2 avx f16c\n").is_new_enough);
}
#endif

TEST(Machine, DescribesThisOne) {
  const Machine machine = this_machine();
  EXPECT_FALSE(machine.kernel.empty());
  EXPECT_GT(machine.cpu.logical_cores, 0);
  EXPECT_GT(machine.usable_cores, 0);
  EXPECT_LE(machine.usable_cores, machine.cpu.logical_cores);
  EXPECT_GT(machine.memory_bytes, std::int64_t{1} << 26);
  EXPECT_TRUE(machine.cpu.is_new_enough);  // or this program would not run
  EXPECT_EQ(machine.nvidia.gpus.empty(), !machine.nvidia.problem.empty());
}

TEST(Machine, AGpuWithoutADataSheetHasAnEstimate) {
  Machine machine;
  const GpuClocks clocks{.multiprocessors = 100, .clock = 1e9, .memory_clock = 1e9, .memory_bus_bits = 4096};
  machine.nvidia.gpus.push_back({.name = "Some GPU", .compute_capability = "9.0", .clocks = clocks});
  machine.nvidia.gpus.push_back(
      {.name = "Some GPU MIG 1g.10gb", .compute_capability = "9.0", .clocks = clocks});
  const auto specs = specs_of(machine, Device::cuda(0));
  ASSERT_TRUE(specs);
  EXPECT_TRUE(specs->estimated);
  EXPECT_EQ(to_json(machine)["gpus"][0]["specs"]["estimated"], true);
  EXPECT_FALSE(specs_of(machine, Device::cuda(1))) << "a slice has not the memory of the whole";
}

TEST(Machine, AbsentPartsAreNullInJson) {
  Machine machine;
  machine.nvidia.gpus.push_back(
      {.name = "Some GPU", .compute_capability = "9.0", .memory_bytes = 80, .clocks = {}});
  machine.libmpi = "/usr/lib/libmpi.so.40";
  const Json json = to_json(machine);
  EXPECT_TRUE(json["libnccl"].is_null());
  EXPECT_EQ(json["libmpi"], "/usr/lib/libmpi.so.40");
  EXPECT_EQ(json["gpus"][0]["compute_capability"], "9.0");
  EXPECT_TRUE(json["gpus"][0]["specs"].is_null());
  machine.nvidia.gpus[0].name = "NVIDIA H200";
  EXPECT_EQ(to_json(machine)["gpus"][0]["specs"]["memory_bytes_per_second"], 4.8e12);
  EXPECT_EQ(to_json(machine)["gpus"][0]["specs"]["estimated"], false);
  EXPECT_THAT(to_json(Machine{})["gpus"], IsEmpty());
}

}  // namespace
}  // namespace hstu
