#include <memory>
#include <string>
#include <vector>

#include "hstu/base/json_text.h"
#include "hstu/base/standard_output.h"
#include "hstu/base/text.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/checkpoint/verify.h"
#include "hstu/cli/commands.h"
#include "hstu/cli/inspect_statistics.h"
#include "hstu/cli/inspect_views.h"
#include "hstu/dataset/segments.h"
#include "hstu/run/folder.h"
#include "hstu/run/lock.h"
#include "hstu/score/model_folder.h"

namespace hstu {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Adds "outer.inner" rows for every number and word below `json`.
void flatten(const Json& json, const std::string& name, Rows* rows) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      flatten(value, name.empty() ? key : fmt::format("{}.{}", name, key), rows);
  } else if (json.is_array() && !json.empty() && json.front().is_structured()) {
    for (std::size_t i = 0; i < json.size(); ++i) flatten(json[i], fmt::format("{}.{}", name, i), rows);
  } else {
    rows->push_back({name, json.is_string() ? json.get<std::string>() : json.dump()});
  }
}

std::string every_value(const Json& json) {
  Rows rows{{"what", "value"}};
  flatten(json, "", &rows);
  return table(rows);
}

// Without the parameters, which docs/model.md lists.
std::string export_view(Json json) {
  json.erase("parameters");
  return every_value(json);
}

// The file whose values a view shows.
Path shown_file(const std::string& kind, const Path& path) {
  if (kind == "export") return ExportFolder{path}.manifest();
  return kind == "run" ? RunFolder{path}.summary() : path / kManifestFile;
}

std::string view(const Json& json, const Path& path) {
  const std::string kind = json["kind"];
  try {
    if (kind == "export") return export_view(json);
    if (kind == "run") return run_view(json, RunFolder{path});
    return kind == "dataset" ? dataset_view(json) : checkpoint_view(json);
  } catch (const Json::exception& error) {
    fail("{}: a value is not what hstu writes there ({}): restore the file, or see all of it by --json",
         shown_file(kind, path).string(), json_problem(error));
  }
}

// What the manifest of the dataset's own folder says, counts and times of all segments together, and the
// manifests of those that were appended.
Json dataset_manifest(const Path& path) {
  const std::vector<SegmentFolder> segments = read_segments(path);  // refuses what is torn
  Json json = parse_json(read_file(path / kManifestFile), path / kManifestFile);
  if (segments.size() == 1) return json;
  const Json all = Json::parse(manifest_to_json(manifest_of(segments)));
  for (const char* const key : {"id", "counts", "time"}) json[key] = all.at(key);
  json.erase("ties");  // nobody has counted them between segments
  for (std::size_t s = 1; s < segments.size(); ++s)
    json["segments"].push_back(Json::parse(manifest_to_json(segments[s].manifest)));
  return json;
}

// The content of a folder, of whatever kind.
Json inspect(const Path& path) {
  Json json;
  if (is_export(path)) {
    json["kind"] = "export";
    json.update(parse_json(read_file(ExportFolder{path}.manifest()), ExportFolder{path}.manifest()));
    return json;
  }
  if (std::filesystem::exists(RunFolder{path}.config())) {
    const RunFolder run = open_run_folder(path);
    json["kind"] = "run";
    json["config_hash"] = config_hash(to_toml(read_run_options(run)));
    for (const CheckpointEntry& entry : list_checkpoints(run.checkpoints()))
      json["checkpoints"].push_back(entry.step);
    if (const auto best = linked_checkpoint(run.checkpoints(), kBestLink))
      json["best_checkpoint"] = best->step;
    json["training"] = is_being_trained(run.lock());
    if (std::filesystem::exists(run.summary()))
      json["summary"] = parse_json(read_file(run.summary()), run.summary());
    return json;
  }
  if (!std::filesystem::exists(path / kManifestFile)) {
    fail_usage("{} is neither a dataset, a run nor a checkpoint: it has no {} and no config.toml",
               path.string(), kManifestFile);
  }
  const Json manifest = parse_json(read_file(path / kManifestFile), path / kManifestFile);
  const bool dataset =
      manifest.is_object() && manifest.contains("format") && manifest["format"] == "hstu-dataset";
  json["kind"] = dataset ? "dataset" : "checkpoint";
  if (dataset) {
    json.update(dataset_manifest(path));
    json["statistics"] = dataset_statistics(path);
    return json;
  }
  const CheckpointManifest content = read_checkpoint_manifest(path);
  if (content.state.contains("source"))  // an export of tables, which stands without what it follows
    verify_checkpoint(path, content);
  else
    const Checkpoint checked(path);  // verifies every checksum
  json.update(manifest);
  return json;
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  struct Words {
    Path path;
    bool all = false, json = false;
  };
  auto words = std::make_shared<Words>();
  CLI::App* const command =
      app.add_subcommand("inspect", "Show what is inside a dataset, a run, a checkpoint or an export");
  command->add_option("PATH", words->path, "the folder")->required();
  command->add_flag("--all", words->all, "every value, checksums included, one on each line");
  command->add_flag("--json", words->json, "every value, for programs");
  command->footer(
      "A checkpoint is verified on the way: every byte is compared with its checksum.\n"
      "Examples:\n  hstu inspect dataset\n  hstu inspect run --json\n"
      "  hstu inspect run/checkpoints/step_00000100");
  command->callback([words] {
    const Json json = inspect(words->path);
    if (words->json) {
      fmt::print("{}\n", json.dump(2));
      return;
    }
    try {
      print_text("{}", words->all ? every_value(json) : view(json, words->path));
    } catch (const nlohmann::json::exception& error) {  // values that no checksum covers
      fail("{}: a file was altered: {}", words->path.string(), json_problem(error));
    }
  });
}

}  // namespace hstu
