#include "hstu/device/nvidia_driver.h"

#include <array>
#include <cstddef>
#include <fstream>
#include <string>

#include <dlfcn.h>
#include <fmt/format.h>

namespace hstu {
namespace {

// Values of the driver's stable C interface.
constexpr int kClockKhz = 13, kMultiprocessorCount = 16, kMemoryClockKhz = 36, kMemoryBusBits = 37,
              kL2Bytes = 38, kCapabilityMajor = 75, kCapabilityMinor = 76;

template <typename Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

// The first line of /proc/driver/nvidia/version names the kernel module and its version.
std::optional<std::string> kernel_module_version() {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ...": the first word of numbers and dots.
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    const bool numbers = word.find_first_not_of("0123456789.") == std::string::npos;
    if (numbers && word.find('.') != std::string::npos) return word;
  }
  return {};
}

Gpu describe_gpu(void* cuda, int device) {
  Gpu gpu;
  const auto get_name = symbol<int(char*, int, int)>(cuda, "cuDeviceGetName");
  const auto get_attribute = symbol<int(int*, int, int)>(cuda, "cuDeviceGetAttribute");
  const auto total_memory = symbol<int(std::size_t*, int)>(cuda, "cuDeviceTotalMem_v2");
  std::array<char, 256> name{};
  if (get_name != nullptr && get_name(name.data(), static_cast<int>(name.size()), device) == 0)
    gpu.name = name.data();
  if (get_attribute != nullptr) {
    const auto attribute = [&](int which) {
      int value = 0;
      return get_attribute(&value, which, device) == 0 ? value : 0;
    };
    gpu.compute_capability = fmt::format("{}.{}", attribute(kCapabilityMajor), attribute(kCapabilityMinor));
    gpu.clocks = {.multiprocessors = attribute(kMultiprocessorCount),
                  .clock = attribute(kClockKhz) * 1e3,
                  .memory_clock = attribute(kMemoryClockKhz) * 1e3,
                  .memory_bus_bits = attribute(kMemoryBusBits),
                  .l2_bytes = attribute(kL2Bytes)};
  }
  std::size_t bytes = 0;
  if (total_memory != nullptr && total_memory(&bytes, device) == 0)
    gpu.memory_bytes = static_cast<std::int64_t>(bytes);
  return gpu;
}

std::string error_text(void* cuda, int error) {
  const auto get_text = symbol<int(int, const char**)>(cuda, "cuGetErrorString");
  const char* text = nullptr;
  if (get_text == nullptr || get_text(error, &text) != 0 || text == nullptr)
    return fmt::format("error {}", error);
  return text;
}

}  // namespace

NvidiaDriver nvidia_driver() {
  NvidiaDriver driver;
  driver.version = kernel_module_version();
  void* cuda =
      ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);  // stays open: the driver does not like to be closed
  if (cuda == nullptr) {
    driver.problem = "libcuda.so.1 not found: no NVIDIA driver is installed";
    return driver;
  }
  const auto initialise = symbol<int(unsigned)>(cuda, "cuInit");
  const auto get_version = symbol<int(int*)>(cuda, "cuDriverGetVersion");
  const auto count_devices = symbol<int(int*)>(cuda, "cuDeviceGetCount");
  if (initialise == nullptr || get_version == nullptr || count_devices == nullptr) {
    driver.problem = "libcuda.so.1 is not a usable NVIDIA driver";
    return driver;
  }
  int version = 0, count = 0;
  if (get_version(&version) == 0)
    driver.cuda_version = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  if (const int error = initialise(0); error != 0) {
    driver.problem = fmt::format("the NVIDIA driver does not start: {}", error_text(cuda, error));
    return driver;
  }
  if (const int error = count_devices(&count); error != 0) {
    driver.problem = fmt::format("the NVIDIA driver does not list its GPUs: {}", error_text(cuda, error));
    return driver;
  }
  for (int device = 0; device < count; ++device) driver.gpus.push_back(describe_gpu(cuda, device));
  if (driver.gpus.empty()) driver.problem = "the NVIDIA driver sees no GPU";
  return driver;
}

}  // namespace hstu
