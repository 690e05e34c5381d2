#include "hstu/run/state.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

Json to_json(const RunState& state) {
  return {{"samples", state.samples},
          {"next", {{"epoch", state.next.epoch}, {"window", state.next.window}, {"batch", state.next.batch}}},
          {"loss_sum", state.loss_sum},
          {"loss_steps", state.loss_steps},
          {"windows_done", state.windows_done},
          {"window_end", state.window_end},
          {"evaluation", state.evaluation ? evaluation_state(*state.evaluation) : Json()},
          {"evaluated_at", state.evaluated_at},
          {"evaluation_due", state.evaluation_due},
          {"best", to_json(state.best)}};
}

void read(const Json& json, RunState& state) {
  json.at("samples").get_to(state.samples);
  json.at("next").at("epoch").get_to(state.next.epoch);
  json.at("next").at("window").get_to(state.next.window);
  json.at("next").at("batch").get_to(state.next.batch);
  json.at("loss_sum").get_to(state.loss_sum);
  json.at("loss_steps").get_to(state.loss_steps);
  json.at("windows_done").get_to(state.windows_done);
  json.at("window_end").get_to(state.window_end);
  if (!json.at("evaluation").is_null()) state.evaluation = evaluation_from_state(json.at("evaluation"));
  json.at("evaluated_at").get_to(state.evaluated_at);
  json.at("evaluation_due").get_to(state.evaluation_due);
  state.best = best_evaluation_from_json(json.value("best", Json()));  // earlier versions lack it
}

// Descriptions in checkpoints are plain nlohmann::json.
Section state_section(RunState& state) {
  return {"run",
          [&state](SectionWriter& writer) { writer.describe(nlohmann::json::parse(to_json(state).dump())); },
          [&state](const SectionReader& reader) {
            try {
              read(Json::parse(reader.description().dump()), state);
            } catch (const Error& error) {
              fail("{}: run: {}", (reader.folder() / "manifest.json").string(), error.what());
            }
          }};
}

// Checkpoints of other programs have other states.
std::string text_in_state(const Checkpoint& checkpoint, const char* key) {
  const auto found = checkpoint.state().find(key);
  check(found != checkpoint.state().end() && found->is_string(),
        "{}: state: expected a text \"{}\": it is not the checkpoint of a run", checkpoint.path().string(),
        key);
  return found->get<std::string>();
}

}  // namespace

Path save_run(const Path& checkpoints, const RunOrigin& origin, RunState state, const std::string& reason,
              std::vector<Section> sections, const std::function<void()>& before_rename,
              const std::optional<CheckpointBase>& base) {
  sections.push_back(state_section(state));
  nlohmann::json facts{{"dataset", origin.dataset}, {"config", origin.config}, {"reason", reason}};
  if (!origin.manifest.empty()) facts["manifest"] = origin.manifest;
  if (!origin.earlier.empty()) facts["earlier_datasets"] = origin.earlier;
  return save_checkpoint(checkpoints, state.step, sections, facts, before_rename, base);
}

RunState load_run(const Checkpoint& checkpoint, std::vector<Section> sections) {
  RunState state;
  sections.push_back(state_section(state));
  checkpoint.load(sections);
  state.step = checkpoint.step();
  return state;
}

RunState load_run(const Checkpoint& checkpoint, const Dataset& dataset, std::vector<Section> sections) {
  check_extends(dataset, checkpoint);
  return load_run(checkpoint, std::move(sections));
}

void check_extends(const Dataset& dataset, const Checkpoint& checkpoint) {
  const std::string id = saved_dataset(checkpoint);
  if (dataset.manifest().extends_or_is(id)) return;
  fail_usage("{} was trained on dataset {}, but {} is {}: point data.path at the dataset of the run",
             checkpoint.path().string(), id, dataset.folder().string(), dataset.manifest().id);
}

std::string saved_reason(const Checkpoint& checkpoint) {
  return text_in_state(checkpoint, "reason");
}

std::string saved_dataset(const Checkpoint& checkpoint) {
  return text_in_state(checkpoint, "dataset");
}

std::vector<std::string> saved_earlier_datasets(const Checkpoint& checkpoint) {
  const auto found = checkpoint.state().find("earlier_datasets");
  if (found == checkpoint.state().end()) return {};
  std::vector<std::string> ids;
  check(found->is_array(), "{}: state: expected a list \"earlier_datasets\"", checkpoint.path().string());
  for (const auto& id : *found) {
    check(id.is_string(), "{}: state: earlier_datasets: expected texts, found {}", checkpoint.path().string(),
          id.dump());
    ids.push_back(id.get<std::string>());
  }
  return ids;
}

std::optional<Manifest> saved_manifest(const Checkpoint& checkpoint) {
  if (!checkpoint.state().contains("manifest")) return std::nullopt;
  return manifest_from_json(text_in_state(checkpoint, "manifest"), checkpoint.path());
}

RunOptions saved_options(const Checkpoint& checkpoint) {
  return parse_config<RunOptions>(text_in_state(checkpoint, "config"), checkpoint.path().string(), {},
                                  UnreadKeys::taken);
}

void link_best(const Path& checkpoints, const BestEvaluation& best) {
  const Path path = checkpoints / checkpoint_name(std::max<std::int64_t>(best.step, 0));
  if (best.step >= 0 && std::filesystem::exists(path))
    set_link(checkpoints, kBestLink, path);
  else
    remove_link(checkpoints, kBestLink);
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

Path find_checkpoint(const Path& checkpoints, const std::string& word) {
  if (word.empty()) return find_checkpoint(checkpoints, -1);
  if (word == kBestLink) {
    const auto best = linked_checkpoint(checkpoints, kBestLink);
    if (!best)
      fail_usage("{} has no best checkpoint: train with checkpoint.best set to a metric",
                 checkpoints.string());
    return best->path;
  }
  const auto step = parse_number<std::int64_t>(word);
  if (!step || *step < 0) fail_usage("--checkpoint {}: expected a step or best", word);
  return find_checkpoint(checkpoints, *step);
}

}  // namespace hstu
