#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hstu/cli/commands.h"
#include "hstu/cli/installed.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/experiment/divided_heads.h"
#include "hstu/plan/group_choice.h"
#include "hstu/plan/memory_plan.h"
#include "hstu/plan/rank_plan.h"
#include "hstu/plan/step_estimate.h"
#include "hstu/plan/table_tiers.h"

namespace hstu {
namespace {

struct PlanWords {
  Path config;
  std::vector<std::string> set;
  std::string gpu;
  int ranks = 1;
  double link_gbs = 0, network_gbs = 50;
  int gpus_per_host = 8;
  bool json = false;
};

// `gpu`: none if its figures are not known.
Interconnect interconnect_of(const PlanWords& words, const std::optional<GpuSpecs>& gpu) {
  return {.link = words.link_gbs > 0 ? words.link_gbs * 1e9
                  : gpu              ? gpu->link_bandwidth
                                     : 0,
          .network = words.network_gbs * 1e9,
          .gpus_per_host = words.gpus_per_host};
}

}  // namespace

void add_plan_command(CLI::App& app) {
  auto words = std::make_shared<PlanWords>();
  CLI::App* const command = app.add_subcommand("plan", "Print the memory that training will need");
  command->add_option("CONFIG", words->config, "a TOML file; hstu config lists every key")->required();
  command->add_option("--set", words->set, "section.key=value, on top of the file; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--gpu", words->gpu,
                      "a part of the name of a GPU that need not be here, for example h200, in a program "
                      "with GPU kernels; default: the "
                      "configuration's device");
  command
      ->add_option(
          "--ranks", words->ranks,
          "of so many ranks: the memory of one, how they share the tables, how even their work will be and "
          "what they send each other; they need not be here, the dataset must")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option(
          "--link-gbs", words->link_gbs,
          "with --ranks: GB/s each way from a GPU to others of its host; default: NVLink's or PCIe's, by "
          "the GPU's data sheet")
      ->check(CLI::PositiveNumber);
  command
      ->add_option(
          "--network-gbs", words->network_gbs,
          "with --ranks: GB/s each way from a GPU to those of other hosts; default: 50, an adapter of 400 "
          "Gbit/s for each GPU")
      ->check(CLI::PositiveNumber);
  command->add_option("--gpus-per-host", words->gpus_per_host, "with --ranks: default: 8")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", words->json, "print JSON");
  command->footer(
      "Makes a step without computing it, on the largest batch of the run, and counts its memory. A table "
      "has\n"
      "memory for the ids that occur. Where the dataset does not say how many those are, the plan gives a "
      "bound.\n"
      "hstu train refuses a run that does not fit, bounds aside.\n"
      "Example:\n"
      "  hstu plan configs/movielens-100k.toml --set data.path=dataset --set precision=bf16 --gpu h200\n"
      "  hstu plan configs/movielens-100k.toml --set data.path=dataset --ranks 16\n"
      "  hstu plan configs/movielens-100k.toml --set data.path=dataset --ranks 1024 --gpu h100 --network-gbs "
      "25");
  command->callback([words] {
    const auto asked = load_config<RunOptions>(find_config(words->config), words->set);
    check_consistency(asked);
    if (words->ranks > 1) check_tensor_ranks(asked, words->ranks);
    const PlannedDevice device = capped(
        words->gpu.empty() ? planned_device(choose_device(asked.device).device) : planned_gpu(words->gpu),
        asked);
    const std::optional<GpuSpecs> gpu = specs_of(device);
    const auto [options, why] = with_context(asked, device, words->ranks, interconnect_of(*words, gpu));
    const MemoryPlan plan =
        plan_memory(with_places(options, device, words->ranks), device.device, words->ranks);
    Json json = to_json(plan, device);
    std::string text = why + to_text(plan, device);
    if (words->ranks > 1) {
      const RankPlan of_ranks = plan_ranks(options, words->ranks);
      json["over_ranks"] = to_json(of_ranks);
      text += "\n" + tables_text(of_ranks, plan) + "\n" + to_text(of_ranks);
      json["over_ranks"]["context"] = options.ranks.context;
      if (gpu) {
        const auto steps = estimate_scaling(options, *gpu, interconnect_of(*words, gpu), words->ranks);
        json["estimate"] = to_json(steps);
        text += fmt::format(
            "\nestimate for {}, the same batch on 1, 2, 4 ... ranks (docs/performance/ranks.md)\n{}",
            device.name, to_text(steps));
        const auto choices = group_choices(with_places(options, device, words->ranks), device, *gpu,
                                           interconnect_of(*words, gpu), words->ranks);
        json["estimate"]["groups"] = to_json(choices);
        if (choices.size() > 1)
          text += fmt::format(
              "\nranks that share heads (ranks.tensor) and long samples (ranks.context), of {} ranks\n{}",
              words->ranks, to_text(choices));
      }
    }
    fmt::print("{}", words->json ? json.dump(2) + "\n" : text);
  });
}

}  // namespace hstu
