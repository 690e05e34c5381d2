#include "hstu/experiment/device_choice.h"

#include "hstu/base/error.h"
#include "hstu/device/built_with_cuda.h"
#include "hstu/device/machine.h"
#include "hstu/tensor/profiler_trace.h"

namespace hstu {
namespace {

// What is in the way of training on GPUs, or "".
std::string obstacle() {
  if (!kBuiltWithCuda) return "this hstu was built without CUDA";
  if (cuda_device_count() > 0) return "";
  const std::string problem = this_machine().nvidia.problem;
  return problem.empty() ? "the driver offers no GPU" : problem;
}

}  // namespace

DeviceChoice choose_device(std::string_view word) {
  const bool automatic = word == "auto";
  const Device asked = automatic ? Device::cuda(0) : parse_device(word);
  if (asked.is_host()) return {asked, "as configured"};
  const std::string problem = obstacle();
  if (automatic && !problem.empty()) return {Device::host(), "no GPU: " + problem};
  check(problem.empty(), "device = \"{}\": {}. Use \"host\" or \"auto\"", word, problem);
  check(asked.index < cuda_device_count(), "device = \"{}\": expected a number below {}, the GPUs here", word,
        cuda_device_count());
  return {asked, automatic ? "the first GPU" : "as configured"};
}

DeviceChoice choose_device(const RunOptions& options) {
  DeviceChoice choice = choose_device(options.device);
  if (options.precision == Precision::bf16 && choice.device.is_host())
    fail_usage("precision = \"bf16\" needs a GPU, and device = \"{}\" is the host ({}): use fp32",
               options.device, choice.why);
  if (options.attention != AttentionChoice::automatic && choice.device.is_host())
    fail_usage("attention = \"{}\" needs a GPU, and device = \"{}\" is the host ({}): use auto",
               word_of(kAttentionChoices, options.attention), options.device, choice.why);
  return choice;
}

Context open_device(Device device, std::int64_t memory_limit) {
  if (!device.is_host()) make_current(device);
  Context context = own_context(device, memory_limit);
  context.trace = profiler_trace();
  return context;
}

std::optional<double> peak_flops(Device device, Precision precision) {
  if (device.is_host()) return std::nullopt;
  const auto specs = specs_of(this_machine(), device);
  if (!specs) return std::nullopt;
  return precision == Precision::bf16 ? specs->bf16 : specs->fp32;
}

}  // namespace hstu
