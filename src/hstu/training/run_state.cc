#include "hstu/training/run_state.h"

#include "hstu/base/text.h"
#include "hstu/checkpoint/checkpoint.h"

namespace hstu {
namespace {

nlohmann::json bad_ids_to_json(const BadIds& bad_ids) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& feature : bad_ids.features()) json[feature.name] = feature.count;
  return json;
}

}  // namespace

Path save_run(const Path& checkpoints, const Experiment& experiment, const RunState& state) {
  const nlohmann::json json{
      {"dataset", experiment.dataset().manifest().id},
      {"samples", state.samples},
      {"next", {{"epoch", state.next.epoch}, {"window", state.next.window}, {"batch", state.next.batch}}},
      {"loss_sum", state.loss_sum},
      {"loss_steps", state.loss_steps},
      {"windows_done", state.windows_done},
      {"fraction_evaluations", state.fraction_evaluations},
      {"bad_ids", bad_ids_to_json(experiment.learner().embeddings.bad_ids())}};
  const Path path =
      save_checkpoint(checkpoints, state.step, experiment.learner().model.parameters().all(),
                      experiment.learner().dense_optimizer, experiment.learner().embeddings.tables(), json);
  prune_checkpoints(checkpoints, state.step, experiment.options().checkpoint.keep);
  return path;
}

RunState load_run(const Path& path, Experiment& experiment) {
  const Checkpoint checkpoint(path);
  const nlohmann::json& json = checkpoint.state();
  const auto dataset = json.at("dataset").get<std::string>();
  check(dataset == experiment.dataset().manifest().id,
        "{} was trained on dataset {}, but {} is {}: point data.path at the dataset of the run",
        path.string(), dataset, experiment.dataset().folder().string(), experiment.dataset().manifest().id);
  checkpoint.load(experiment.learner().model.parameters().all());
  checkpoint.load(experiment.learner().dense_optimizer);
  checkpoint.load(experiment.learner().embeddings.tables());
  RunState state;
  state.step = checkpoint.step();
  json.at("samples").get_to(state.samples);
  json.at("next").at("epoch").get_to(state.next.epoch);
  json.at("next").at("window").get_to(state.next.window);
  json.at("next").at("batch").get_to(state.next.batch);
  json.at("loss_sum").get_to(state.loss_sum);
  json.at("loss_steps").get_to(state.loss_steps);
  json.at("windows_done").get_to(state.windows_done);
  json.at("fraction_evaluations").get_to(state.fraction_evaluations);
  return state;
}

Path find_checkpoint(const Path& checkpoints, std::int64_t step) {
  const auto entries = list_checkpoints(checkpoints);
  if (entries.empty()) fail_usage("there is no checkpoint in {}", checkpoints.string());
  if (step < 0) return entries.back().path;
  std::vector<std::string> known;
  for (const CheckpointEntry& entry : entries) {
    if (entry.step == step) return entry.path;
    known.push_back(std::to_string(entry.step));
  }
  fail_usage("there is no checkpoint of step {} in {}; there are: {}", step, checkpoints.string(),
             fmt::join(known, ", "));
}

}  // namespace hstu
