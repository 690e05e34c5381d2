#include "hstu/device/gpu_condition.h"

#include <array>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hstu/base/terminal.h"

namespace hstu {
namespace {

// Values of NVML's stable C interface (nvml.h of the CUDA toolkit).
constexpr int kMultiprocessorClock = 1, kGpuTemperature = 0;
constexpr std::uint64_t kClocksSet = 0x2, kPowerCap = 0x4, kHardwareSlowdown = 0x8, kSoftwareThermal = 0x20,
                        kHardwareThermal = 0x40, kPowerBrake = 0x80;
constexpr std::pair<std::uint64_t, const char*> kReasons[] = {
    {kClocksSet, "clocks that were set"},           {kPowerCap, "power limit"},
    {kHardwareSlowdown, "hardware slowdown"},       {kSoftwareThermal, "overheating"},
    {kHardwareThermal, "overheating, by hardware"}, {kPowerBrake, "power brake"}};

using Handle = void*;

class Nvml {
 public:
  Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    const auto initialise = function<int()>("nvmlInit_v2");
    if (initialise == nullptr || initialise() != 0) library_ = nullptr;
  }
  bool is_there() const { return library_ != nullptr; }

  template <typename Function>
  Function* function(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  // The number that the function writes behind its other arguments.
  template <typename... Arguments>
  std::optional<double> number(const char* name, Arguments... arguments) const {
    unsigned value = 0;
    const auto get = function<int(Arguments..., unsigned*)>(name);
    if (get == nullptr || get(arguments..., &value) != 0) return std::nullopt;
    return value;
  }

 private:
  void* library_;  // stays open, as libcuda does
};

std::optional<double> watts(const std::optional<double>& milliwatts) {
  return milliwatts ? std::optional(*milliwatts / 1000) : std::nullopt;
}

GpuCondition condition_of(const Nvml& nvml, Handle gpu) {
  GpuCondition c;
  std::array<char, 128> name{};
  const auto get_name = nvml.function<int(Handle, char*, unsigned)>("nvmlDeviceGetName");
  if (get_name != nullptr && get_name(gpu, name.data(), static_cast<unsigned>(name.size())) == 0)
    c.name = name.data();
  c.clock = nvml.number("nvmlDeviceGetClockInfo", gpu, kMultiprocessorClock);
  c.max_clock = nvml.number("nvmlDeviceGetMaxClockInfo", gpu, kMultiprocessorClock);
  c.power = watts(nvml.number("nvmlDeviceGetPowerUsage", gpu));
  c.power_limit = watts(nvml.number("nvmlDeviceGetEnforcedPowerLimit", gpu));
  c.default_power_limit = watts(nvml.number("nvmlDeviceGetPowerManagementDefaultLimit", gpu));
  c.temperature = nvml.number("nvmlDeviceGetTemperature", gpu, kGpuTemperature);
  unsigned long long reasons = 0;
  const auto get_reasons =
      nvml.function<int(Handle, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
  if (get_reasons != nullptr && get_reasons(gpu, &reasons) == 0) c.held_back = reasons;
  return c;
}

}  // namespace

std::vector<GpuCondition> gpu_conditions() {
  static const auto* const nvml = new Nvml;
  std::vector<GpuCondition> conditions;
  if (!nvml->is_there()) return conditions;
  const auto count = nvml->number("nvmlDeviceGetCount_v2");
  const auto get_handle = nvml->function<int(unsigned, Handle*)>("nvmlDeviceGetHandleByIndex_v2");
  for (unsigned i = 0; get_handle != nullptr && i < count.value_or(0); ++i) {
    Handle gpu = nullptr;
    if (get_handle(i, &gpu) == 0) conditions.push_back(condition_of(*nvml, gpu));
  }
  return conditions;
}

std::vector<std::string> reasons_of(const GpuCondition& condition) {
  std::vector<std::string> reasons;
  for (const auto& [bit, words] : kReasons)
    if ((condition.held_back & bit) != 0) reasons.emplace_back(words);
  return reasons;
}

std::string warning_of(const GpuCondition& c) {
  std::vector<std::string> warnings;
  if ((c.held_back & kClocksSet) != 0)
    warnings.push_back(
        fmt::format("its clocks are set to {:.0f} of {:.0f} MHz (nvidia-smi -rgc, -rac reset them)",
                    c.clock.value_or(0), c.max_clock.value_or(0)));
  if (c.power_limit && c.default_power_limit && *c.power_limit < *c.default_power_limit)
    warnings.push_back(fmt::format("its power limit is {:.0f} W instead of {:.0f} W", *c.power_limit,
                                   *c.default_power_limit));
  if ((c.held_back & (kHardwareSlowdown | kHardwareThermal | kPowerBrake)) != 0)
    warnings.emplace_back("its hardware has halved the clocks or more (heat or power supply)");
  if (warnings.empty()) return "";
  return fmt::format("{}: {}", c.name, fmt::join(warnings, "; "));
}

Json to_json(const GpuCondition& c) {
  return {{"name", c.name},
          {"clock_mhz", c.clock},
          {"max_clock_mhz", c.max_clock},
          {"power_w", c.power},
          {"power_limit_w", c.power_limit},
          {"default_power_limit_w", c.default_power_limit},
          {"temperature_c", c.temperature},
          {"held_back_by", reasons_of(c)}};
}

Json report_gpus() {
  Json gpus = Json::array();
  for (const GpuCondition& condition : gpu_conditions()) {
    gpus.push_back(to_json(condition));
    if (const std::string warning = warning_of(condition); !warning.empty())
      print_note("WARNING: {}\n", warning);
  }
  return gpus;
}

}  // namespace hstu
