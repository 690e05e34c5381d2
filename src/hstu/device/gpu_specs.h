// What GPUs can do at most, from their data sheets or estimated: the reference for shares of peak, memory
// floors and model FLOPs utilisation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hstu {

// Rates are floating-point operations a second of dense matrix products (no structured sparsity) with sums in
// fp32, at the boost clock that the data sheet assumes. A multiply-add is two operations.
struct GpuSpecs {
  double bf16 = 0;
  double fp16 = 0;
  double tf32 = 0;
  double fp32 = 0;              // outside tensor cores
  double fp8 = 0;               // 0: the tensor cores have no fp8
  double memory_bandwidth = 0;  // bytes a second
  double link_bandwidth = 0;    // bytes a second each way to other GPUs of the host: NVLink, else PCIe
  std::int64_t l2_bytes = 0;
  bool estimated = false;  // from multiprocessors and clocks: no data sheet is known
};

// A GPU that need not be here.
struct GpuModel {
  std::string_view name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;  // of the data sheet; drivers report a little less
};

// The first of the table whose name has these words, "l40"; without one the first whose name contains these
// letters, "pro 6000 black". Capital letters are the same as others.
std::optional<GpuModel> find_gpu(std::string_view part_of_name);
// All names of the table, separated by commas.
std::string gpu_names();

// The GPU of this name, as the driver gives it ("NVIDIA H100 PCIe"), and compute capability ("9.0"). None for
// a name that the table does not have, for slices of a GPU ("... MIG 1g.10gb"), and where the capability is
// not that of the named GPU: a figure of another model would be wrong.
std::optional<GpuSpecs> gpu_specs(std::string_view name, std::string_view compute_capability);

// What the driver says of a GPU whose data sheet is not known. Rates in hertz, 0: the driver does not say.
struct GpuClocks {
  int multiprocessors = 0;
  double clock = 0, memory_clock = 0;
  int memory_bus_bits = 0;
  std::int64_t l2_bytes = 0;
};
// The rates of its generation's multiprocessors at its clock; link_bandwidth is that of PCIe. None for a
// generation before Ampere or after those known, and without multiprocessors or a clock.
std::optional<GpuSpecs> estimate_specs(std::string_view compute_capability, const GpuClocks& clocks);

}  // namespace hstu
