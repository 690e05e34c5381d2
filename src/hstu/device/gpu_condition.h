// How the GPUs of this machine run now: clocks, power, what holds them back. Asked through libnvidia-ml.so.1
// at run time (NVML), which comes with the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/json.h"

namespace hstu {

struct GpuCondition {
  std::string name;
  // MHz of the multiprocessors; watts; degrees Celsius. What the driver does not say is empty.
  std::optional<double> clock, max_clock, power, power_limit, default_power_limit, temperature;
  std::uint64_t held_back = 0;  // NVML's bits of reasons for a lower clock
};

// In NVML's order; empty without an NVIDIA driver. Never throws: figures that are measured do not depend on
// it.
std::vector<GpuCondition> gpu_conditions();

// The reasons in words, idleness left out: "power limit", "overheating".
std::vector<std::string> reasons_of(const GpuCondition& condition);

// What makes figures of this GPU unlike those of its kind: clocks set below the highest, a lowered power
// limit, a hardware slowdown. "": nothing.
std::string warning_of(const GpuCondition& condition);

Json to_json(const GpuCondition& condition);

// The conditions as a list, for a log. Writes each warning_of() to stderr.
Json report_gpus();

}  // namespace hstu
