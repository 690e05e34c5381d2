// What this machine has, for `hstu doctor` and the first line of a run. Only looks; decides and prints
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/device/device.h"
#include "hstu/device/gpu_specs.h"
#include "hstu/device/nvidia_driver.h"

namespace hstu {

struct Cpu {
  std::string model;                          // "" when the system does not say
  int logical_cores = 0, physical_cores = 0;  // of the whole machine
  // What matters for kernels, as Linux names it, in this order: sse4_2 f16c bmi2 fma avx2 avx_vnni avx512f …
  // amx_tile … (x86-64), asimd bf16 i8mm sve sve2 (arm64). A set is listed when both processor and system
  // support it.
  std::vector<std::string> instruction_sets;

  bool has(std::string_view instruction_set) const;
  // x86-64-v3, the floor of hstu's programs; true on other architectures.
  bool is_new_enough = true;
};

struct Machine {
  std::string system;        // "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;        // "6.1.0-18-amd64"
  std::string architecture;  // "x86_64", "aarch64"
  Cpu cpu;
  int usable_cores = 0;           // that this process may use: affinity and the container's limit
  std::int64_t memory_bytes = 0;  // that this process may use: the machine's or the container's limit
  NvidiaDriver nvidia;
  std::optional<std::string> mpirun, libmpi, libnccl;  // full paths, when found
};

Machine this_machine();
// What the data sheet of this GPU says, else an estimate; none for the host, which has no published peak, for
// slices of a GPU and for generations that hstu does not know.
std::optional<GpuSpecs> specs_of(const Gpu& gpu);
std::optional<GpuSpecs> specs_of(const Machine& machine, Device device);
Json to_json(const Machine& machine);

// The text of Linux's /proc/cpuinfo.
Cpu parse_cpuinfo(std::string_view text);

// A name for this machine until it starts again: equal for all processes on it, in containers too.
std::string this_boot();

struct DeviceMemory {
  std::int64_t total = 0, free = 0;  // bytes
};
// Of a GPU, or of the host: what this process may use, and what the machine has available.
DeviceMemory memory_of(Device device);

// The largest resident size that this process has had, MiB.
std::int64_t peak_rss_mib();

}  // namespace hstu
