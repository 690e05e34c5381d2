#include "hstu/plan/tensor_choice.h"

#include <algorithm>

#include "hstu/base/text.h"

namespace hstu {

std::vector<TensorChoice> tensor_choices(const RunOptions& options, const PlannedDevice& device,
                                         const GpuSpecs& gpu, const Interconnect& net, int ranks) {
  const TaskData data(options);
  const Model& model = *data.task.model;
  const std::int64_t heads = model.why_whole_heads().empty() ? model.layers().layer.heads : 1;
  std::vector<TensorChoice> choices;
  for (int tensor = 1; ranks % tensor == 0 && heads % tensor == 0; tensor *= 2) {
    RunOptions with = options;
    with.ranks.tensor = tensor;
    TensorChoice& choice = choices.emplace_back();
    choice.tensor = tensor;
    choice.step = estimate_step(plan_ranks(with, data, ranks, 1), gpu, options.precision, net);
    choice.memory = plan_memory(with, data, device.device, ranks).total();
    choice.fits = device.memory_bytes == 0 || choice.memory <= usable_bytes(device);
  }
  return choices;
}

const TensorChoice& best_of(const std::vector<TensorChoice>& choices) {
  return *std::min_element(choices.begin(), choices.end(), [](const TensorChoice& a, const TensorChoice& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.step.seconds() < b.step.seconds() : a.memory < b.memory;
  });
}

std::string to_text(const std::vector<TensorChoice>& choices) {
  std::vector<std::vector<std::string>> rows{
      {"ranks.tensor", "ms a step", "of them for heads", "memory of a rank", ""}};
  for (const TensorChoice& choice : choices) {
    rows.push_back({std::to_string(choice.tensor), fmt::format("{:.1f}", 1000 * choice.step.seconds()),
                    fmt::format("{:.1f}", 1000 * choice.step.heads),
                    human_bytes(static_cast<double>(choice.memory)), choice.fits ? "" : "does not fit"});
  }
  const TensorChoice& best = best_of(choices);
  return table(rows) + fmt::format("best: ranks.tensor = {}, {}\n", best.tensor,
                                   best.fits ? "the fastest that fits" : "though none fits");
}

Json to_json(const std::vector<TensorChoice>& choices) {
  Json lines = Json::array();
  for (const TensorChoice& choice : choices) {
    lines.push_back({{"tensor", choice.tensor},
                     {"seconds", choice.step.seconds()},
                     {"heads_s", choice.step.heads},
                     {"bytes", choice.memory},
                     {"fits", choice.fits}});
  }
  return {{"choices", lines}, {"best", best_of(choices).tensor}};
}

}  // namespace hstu
