#include "hstu/training/data_growth.h"

#include "hstu/base/terminal.h"
#include "hstu/base/text.h"

namespace hstu {

std::optional<DataGrowth> growth_of(const Session& session, const std::optional<Checkpoint>& checkpoint) {
  const Experiment& experiment = session.experiment();
  const std::string& id = experiment.dataset().manifest().id;
  if (!checkpoint || saved_dataset(*checkpoint) == id) return std::nullopt;
  const DataGrowth growth{.from = saved_dataset(*checkpoint),
                          .to = id,
                          .samples = experiment.schedule(session.first_state().next).samples_left()};
  print_note("the dataset has been extended: {} samples are left to train\n",
             with_separators(growth.samples));
  const std::int64_t most = experiment.options().training.max_steps;
  if (most > 0 && session.first_state().step >= most)
    print_note("WARNING: training.max_steps = {} has been reached: set it to 0, or raise it\n", most);
  return growth;
}

RunState state_to_continue(RunState state, bool others, const std::string& metric) {
  if (others) {
    state.evaluation.reset();
    state.evaluated_at = -1;
    state.evaluation_due = false;
  }
  if (others || state.best.metric != metric) {
    state.best = {};
    state.best.metric = metric;
  }
  return state;
}

RunOrigin origin_of(const Experiment& experiment, const RunOptions& options,
                    const std::optional<Checkpoint>& checkpoint) {
  const Manifest& manifest = experiment.dataset().manifest();
  RunOrigin origin{.dataset = manifest.id,
                   .earlier = {},
                   .manifest = manifest.extended.empty() ? manifest_to_json(manifest) : "",
                   .config = to_toml(options)};
  if (!checkpoint) return origin;
  origin.earlier = saved_earlier_datasets(*checkpoint);
  if (const std::string id = saved_dataset(*checkpoint); id != origin.dataset) origin.earlier.push_back(id);
  return origin;
}

}  // namespace hstu
