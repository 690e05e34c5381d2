#include "hstu/experiment/learner_without_data.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "hstu/experiment/device_choice.h"
#include "hstu/experiment/rank_device.h"
#include "hstu/options/make_task.h"
#include "hstu/options/table_options.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {
namespace {

// Those that the model reads, in its order.
std::vector<ActionBit> actions_of_model(std::vector<ActionBit> actions, const FeaturesSection& features) {
  const std::vector<std::string>& wanted = features.actions;
  std::erase_if(actions, [&](const ActionBit& action) {
    return !wanted.empty() && std::ranges::find(wanted, action.name) == wanted.end();
  });
  return actions;
}

}  // namespace

std::unique_ptr<Learner> learner_without_data(const RunOptions& options, Communicator& comm) {
  Task task = make_task(options, stated_facts(task_request(options)));
  return std::make_unique<Learner>(
      options, std::move(task.model), std::move(task.objective),
      open_device(choose_device(options, comm).device, parse_bytes(options.device_memory)), comm);
}

bool is_learner_of(const RunOptions& options, const Learner& learner, const TaskData& data) {
  const std::vector<FeatureSpec> features = learner.model->features(), of_data = data.task.model->features();
  const bool same_tables = std::ranges::equal(
      features, of_data,
      [](const FeatureSpec& a, const FeatureSpec& b) { return a.name == b.name && a.rows == b.rows; });
  return same_tables &&
         actions_of_model(stated_facts(task_request(options)).manifest.actions, options.features) ==
             actions_of_model(data.dataset.manifest().actions, options.features);
}

}  // namespace hstu
