#include "hstu/plan/group_choice.h"

#include <algorithm>

#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr int kMostContext = 8;  // GPUs of a host

// Of the groups that the options name.
class GroupPlanner {
 public:
  GroupPlanner(const RunOptions& options, const PlannedDevice& device, const std::optional<GpuSpecs>& gpu,
               const Interconnect& net, int ranks)
      : options_(options), data_(options), device_(device), gpu_(gpu), net_(net), ranks_(ranks) {}

  const Model& model() const { return *data_.task.model; }

  // With one value of ranks.tensor, for each of ranks.context.
  void add(int tensor, std::vector<GroupChoice>& choices) const {
    for (int context = 1; context <= kMostContext && ranks_ % (tensor * context) == 0; context *= 2) {
      if (!can_share(tensor, context)) continue;
      RunOptions with = options_;
      with.ranks.tensor = tensor, with.ranks.context = context;
      const std::int64_t samples = context_matters() ? kEstimatedBatches * options_.training.batch_size : 1;
      const RankPlan plan = plan_ranks(with, data_, ranks_, samples);
      if (context > 1 && plan.context == 0) return;  // no sample is long
      GroupChoice& choice = choices.emplace_back();
      choice.tensor = tensor, choice.context = context;
      choice.flops = plan.work.flops();
      if (gpu_) choice.step = estimate_step(plan, *gpu_, options_.precision, net_);
      choice.memory = plan_memory(with, data_, device_.device, ranks_).total();
      choice.fits = device_.memory_bytes == 0 || choice.memory <= usable_bytes(device_);
    }
  }

 private:
  bool context_matters() const { return model().layers().layers > 0 && ranks_ > 1; }
  // Keys that are gathered take kernels without tensor cores on a GPU.
  bool can_share(int tensor, int context) const {
    if (context == 1) return true;
    return context_matters() &&
           (device_.device.is_host() || model().layers().layer.heads / tensor % context == 0);
  }

  const RunOptions& options_;
  TaskData data_;
  const PlannedDevice& device_;
  const std::optional<GpuSpecs>& gpu_;
  Interconnect net_;
  int ranks_;
};

double cost_of(const GroupChoice& choice, bool by_flops) {
  return by_flops ? choice.flops : choice.step.seconds();
}

std::string ms(double seconds) {
  return fmt::format("{:.1f}", 1000 * seconds);
}

std::string bytes_of(std::int64_t bytes) {
  return human_bytes(static_cast<double>(bytes));
}

// Why `best` is better than one rank for each sample, the first of the choices.
std::string why(const std::vector<GroupChoice>& choices, const GroupChoice& best, bool by_flops,
                std::int64_t above) {
  const GroupChoice& alone = choices.front();
  if (choices.size() == 1)
    return fmt::format(
        "no sample of the first batches has more than ranks.context_above = {} tokens, or "
        "ranks cannot share it",
        with_separators(above));
  if (!alone.fits)
    return fmt::format("a rank needs {}, with 1 {}, which do not fit", bytes_of(best.memory),
                       bytes_of(alone.memory));
  if (best.context == 1) return "larger groups are not more than a twentieth faster, or do not fit";
  if (by_flops)
    return fmt::format("the rank with the most work has {:.2f} of what it has with 1",
                       best.flops / alone.flops);
  return fmt::format("{} ms a step by plan, with 1 {} ms", ms(best.step.seconds()), ms(alone.step.seconds()));
}

}  // namespace

std::optional<GpuSpecs> specs_of(const PlannedDevice& device) {
  if (device.device.is_host()) return std::nullopt;
  return gpu_specs(device.name, fmt::format("{}.{}", device.device.major, device.device.minor));
}

std::vector<GroupChoice> group_choices(const RunOptions& options, const PlannedDevice& device,
                                       const GpuSpecs& gpu, const Interconnect& net, int ranks) {
  const std::optional<GpuSpecs> specs = gpu;
  const GroupPlanner planner(options, device, specs, net, ranks);
  const Model& model = planner.model();
  const std::int64_t heads = model.why_whole_heads().empty() ? model.layers().layer.heads : 1;
  std::vector<GroupChoice> choices;
  for (int tensor = 1; ranks % tensor == 0 && heads % tensor == 0; tensor *= 2) planner.add(tensor, choices);
  return choices;
}

const GroupChoice& best_of(const std::vector<GroupChoice>& choices, bool by_flops) {
  constexpr double kFaster = 0.95;
  const GroupChoice* best = &choices.front();
  for (const GroupChoice& choice : choices) {
    const bool faster = cost_of(choice, by_flops) < kFaster * cost_of(*best, by_flops);
    if (choice.fits != best->fits ? choice.fits : choice.fits ? faster : choice.memory < best->memory)
      best = &choice;
  }
  return *best;
}

std::string to_text(const std::vector<GroupChoice>& choices) {
  std::vector<std::vector<std::string>> rows{{"ranks.tensor", "ranks.context", "ms a step", "for heads",
                                              "for long samples", "memory of a rank", ""}};
  for (const GroupChoice& choice : choices) {
    rows.push_back({std::to_string(choice.tensor), std::to_string(choice.context), ms(choice.step.seconds()),
                    ms(choice.step.heads), ms(choice.step.context), bytes_of(choice.memory),
                    choice.fits ? "" : "does not fit"});
  }
  const GroupChoice& best = best_of(choices);
  return table(rows) + fmt::format("best: ranks.tensor = {}, ranks.context = {}, {}\n", best.tensor,
                                   best.context, best.fits ? "the fastest that fits" : "though none fits");
}

Json to_json(const std::vector<GroupChoice>& choices) {
  Json lines = Json::array();
  for (const GroupChoice& choice : choices) {
    lines.push_back({{"tensor", choice.tensor},
                     {"context", choice.context},
                     {"seconds", choice.step.seconds()},
                     {"heads_s", choice.step.heads},
                     {"long_samples_s", choice.step.context},
                     {"bytes", choice.memory},
                     {"fits", choice.fits}});
  }
  const GroupChoice& best = best_of(choices);
  return {{"choices", lines}, {"best", {{"tensor", best.tensor}, {"context", best.context}}}};
}

ChosenContext with_context(const RunOptions& options, const PlannedDevice& device, int ranks,
                           const Interconnect& net) {
  if (options.ranks.context != 0) return {options, ""};
  ChosenContext chosen{options, ""};
  chosen.options.ranks.context = 1;
  if (ranks == 1) return chosen;
  const std::optional<GpuSpecs> gpu = specs_of(device);
  Interconnect known = net;
  if (gpu && known.link == 0) known.link = gpu->link_bandwidth;
  std::vector<GroupChoice> choices;
  GroupPlanner(chosen.options, device, gpu, known, ranks)
      .add(static_cast<int>(options.ranks.tensor), choices);
  const GroupChoice& best = best_of(choices, !gpu);
  chosen.options.ranks.context = best.context;
  chosen.why = fmt::format("ranks.context: {} ({})\n", best.context,
                           why(choices, best, !gpu, options.ranks.context_above));
  return chosen;
}

}  // namespace hstu
