#include <memory>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/base/version.h"
#include "hstu/cli/commands.h"
#include "hstu/cli/installed.h"
#include "hstu/cli/link_report.h"
#include "hstu/cli/ranks.h"
#include "hstu/device/gpu_condition.h"
#include "hstu/device/gpu_specs.h"
#include "hstu/device/machine.h"
#include "hstu/kernels/loops.h"

namespace hstu {
namespace {

#ifdef HSTU_WITH_CUDA
constexpr const char* kGpuKernels = "in this program";
#else
constexpr const char* kGpuKernels =
    "not in this program; ./dev build --preset cuda builds build-cuda/hstu with them";
#endif

std::string found(const std::optional<std::string>& path) {
  return path ? *path : "not found";
}

// Dense rates; the shares of peak of `hstu bench` refer to them.
std::string specs_text(const std::optional<GpuSpecs>& specs) {
  if (!specs) return "unknown to hstu: shares of peak are not shown";
  std::string text = fmt::format("bf16 {:.0f}, tf32 {:.0f}, fp32 {:.0f}", specs->bf16 * 1e-12,
                                 specs->tf32 * 1e-12, specs->fp32 * 1e-12);
  if (specs->fp8 > 0) text += fmt::format(", fp8 {:.0f}", specs->fp8 * 1e-12);
  return text + fmt::format(" TFLOP/s, {:.2f} TB/s, L2 {}", specs->memory_bandwidth * 1e-12,
                            human_bytes(static_cast<double>(specs->l2_bytes)));
}

std::string condition_text(const GpuCondition& c) {
  std::string text = fmt::format("{:.0f} of {:.0f} MHz, {:.0f} of {:.0f} W", c.clock.value_or(0),
                                 c.max_clock.value_or(0), c.power.value_or(0), c.power_limit.value_or(0));
  if (const auto reasons = reasons_of(c); !reasons.empty())
    text += fmt::format(", held back by {}", fmt::join(reasons, ", "));
  return text;
}

std::vector<std::vector<std::string>> report(const Machine& machine) {
  std::vector<std::vector<std::string>> rows{{"what", "found"}};
  rows.push_back({"hstu", version()});
  const std::optional<Path> configs = installed_configs();
  rows.push_back({"configurations", configs ? configs->string() : "not installed"});
  rows.push_back(
      {"system", fmt::format("{}, kernel {}, {}", machine.system, machine.kernel, machine.architecture)});
  rows.push_back({"processor", fmt::format("{}, {} cores, {} usable",
                                           machine.cpu.model.empty() ? "unnamed" : machine.cpu.model,
                                           machine.cpu.logical_cores, machine.usable_cores)});
  rows.push_back({"instruction sets", fmt::format("{}", fmt::join(machine.cpu.instruction_sets, " "))});
  rows.push_back({"memory", human_bytes(static_cast<double>(machine.memory_bytes))});
  for (const Gpu& gpu : machine.nvidia.gpus) {
    rows.push_back({"GPU", fmt::format("{}, compute capability {}, {}", gpu.name, gpu.compute_capability,
                                       human_bytes(static_cast<double>(gpu.memory_bytes)))});
    const auto specs = specs_of(gpu);
    const bool estimated = specs && specs->estimated;
    rows.push_back({estimated ? "GPU, estimated" : "GPU, data sheet", specs_text(specs)});
  }
  for (const GpuCondition& condition : gpu_conditions())
    rows.push_back({"GPU, now", condition_text(condition)});
  if (machine.nvidia.gpus.empty()) rows.push_back({"GPU", "none: " + machine.nvidia.problem});
  rows.push_back({"GPU kernels", kGpuKernels});
  rows.push_back({"NVIDIA driver", machine.nvidia.version.value_or("not found")});
  rows.push_back({"mpirun", found(machine.mpirun)});
  rows.push_back({"libmpi", found(machine.libmpi)});
  const bool needs_nccl = machine.nvidia.gpus.size() > 1 && !machine.libnccl;
  rows.push_back({"libnccl", needs_nccl ? "not found: several ranks on GPUs need libnccl2 (docs/ranks.md)"
                                        : found(machine.libnccl)});
  rows.push_back(
      {"loops on the CPU",
       fmt::format("{}: vectors of {} bytes", word_of(kernels::kInstructionSets, kernels::instruction_set()),
                   kernels::loops<float>().vector_bytes)});
  return rows;
}

void report_machine(bool json) {
  const Machine machine = this_machine();
  if (json) {
    Json found = to_json(machine);
    found["gpus_now"] = report_gpus();
    fmt::print("{}\n", found.dump(2));
    return;
  }
  fmt::print("{}", table(report(machine)));
  report_gpus();
  check(machine.cpu.is_new_enough, "this processor is too old: hstu requires AVX2, FMA and BMI2 (x86-64-v3)");
  fmt::print("\nTraining on the CPU works on this machine.\n");
}

void report_ranks(const RankWords& words, bool json) {
  const JoinedRanks group = enter_group(words, "doctor");
  if (group.comm == nullptr)
    fail_usage("--ranks: no launcher has started several ranks: give their number, for example --ranks 2");
  as_rank(group, [&] { report_links(*group.comm, group.launcher, json); });
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  auto ranks = std::make_shared<RankWords>();
  CLI::App* const command =
      app.add_subcommand("doctor", "Print what this machine has and what hstu will use");
  command->add_flag("--json", *json, "print JSON");
  CLI::Option* const asked =
      command
          ->add_option("--ranks", ranks->ranks,
                       "measure the messages between every two of this many processes instead; without a "
                       "number: between those that mpirun, srun or torchrun started")
          ->expected(0, 1)
          ->check(CLI::Range(2, kMostLocalRanks));
  command->add_option("--join", ranks->join)->group("");
  command->footer(
      "Exit status 0 if training on the CPU works, or the ranks were measured.\n"
      "Examples:\n"
      "  hstu doctor\n"
      "  hstu doctor --ranks 2\n"
      "  srun hstu doctor --ranks");
  command->callback([json, ranks, asked] {
    if (asked->count() > 0) return report_ranks(*ranks, *json);
    report_machine(*json);
  });
}

}  // namespace hstu
