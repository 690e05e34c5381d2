#include "hstu/predict/export.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/version.h"
#include "hstu/embedding/written_table.h"
#include "hstu/experiment/learner.h"
#include "hstu/objective/ranking_objective.h"
#include "hstu/options/make_task.h"
#include "hstu/predict/event_file.h"
#include "hstu/run/folder.h"
#include "hstu/run/other_data.h"
#include "hstu/run/pruned.h"
#include "hstu/run/state.h"
#include "hstu/score/model_folder.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {
namespace {

// The configuration of an export has no optimizer: plain SGD keeps no state beside a row.
RunOptions exported(RunOptions options) {
  options.data.path = "dataset";
  options.sparse = {};
  options.sparse.kind = RowOptimizerKind::sgd;
  // Scoring needs no limits, but widths, and the initial values of ids without a row.
  for (auto& [name, table] : options.tables.by_name) {
    TableSection kept;
    kept.initial = table.initial;
    kept.width = table.width;
    table = kept;
  }
  options.dense = {};
  options.warm_start = {};
  options.store = {};
  return options;
}

// The rows of the checkpoint without their optimizer's state, which `exported` does not have.
Section rows_section(const Checkpoint& checkpoint, const std::string& table) {
  const std::string name = "tables/" + table;
  return {name,
          [&checkpoint, name](SectionWriter& writer) {
            const SavedTable rows(checkpoint.section(name));
            nlohmann::json description = identity_of(rows.description());
            description["optimizer"] = word_of(kRowOptimizers, RowOptimizerKind::sgd);
            description["state_width"] = 0;
            const auto base = writer.base();
            if (base && may_follow(base->description(), description))
              write_changes(writer, std::move(description), SavedTable(*base), rows);
            else
              write_whole(writer, std::move(description), rows);
          },
          {}};
}

std::optional<CheckpointBase> base_of(const ExportOptions& options) {
  if (options.base.empty()) return std::nullopt;
  const ExportFolder base{options.base};
  return CheckpointBase{Checkpoint(base.weights()).layer(), options.increments,
                        Path("../..") / base.path.filename() / base.weights().filename()};
}

void write_weights(const Checkpoint& checkpoint, const Learner& learner, const ExportOptions& options,
                   const Path& folder) {
  std::vector<Section> sections;
  for (std::size_t t = 0; t < learner.tables.size(); ++t)
    sections.push_back(rows_section(checkpoint, learner.tables[t].config().name));
  sections.push_back(parameters_section(learner.model->parameters().all()));
  sections.back().load(checkpoint.section(sections.back().name));
  const Path written = save_checkpoint(folder, checkpoint.step(), sections,
                                       {{"dataset", saved_dataset(checkpoint)}, {"reason", kExportReason}},
                                       {}, base_of(options));
  std::filesystem::rename(written, ExportFolder{folder}.weights());
}

Json describe(const Checkpoint& checkpoint, const Dataset& dataset, const Learner& learner) {
  const RankingObjective* const ranking = learner.objective->ranking();
  Json json{{"format", kExportFormat},
            {"version", kExportVersion},
            {"program", version()},
            {"step", checkpoint.step()},
            {"source", checkpoint.manifest().identity()},
            {"dataset", {{"name", dataset.manifest().name}, {"id", dataset.manifest().id}}},
            {"tasks", ranking == nullptr ? std::vector<std::string>() : ranking->tasks()}};
  json["tables"] = Json::array();
  for (std::size_t t = 0; t < learner.tables.size(); ++t) {
    const EmbeddingTable& table = learner.tables[t];
    json["tables"].push_back(
        {{"name", table.config().name},
         {"rows", table.config().rows},
         {"width", table.config().dim},
         {"trained", checkpoint.section("tables/" + table.config().name).description().at("rows_alive")}});
  }
  json["parameters"] = Json::array();
  for (const Parameter* const parameter : learner.model->parameters().all())
    json["parameters"].push_back({{"name", parameter->name}, {"shape", parameter->value.shape()}});
  return json;
}

Json export_once(const ExportOptions& options) {
  ModelFolder run = open_model_folder(options.run, options.checkpoint);
  if (!options.data.empty()) run.options.data.path = options.data;
  const Dataset dataset(run.options.data.path);
  if (!dataset.manifest().extends_or_is(saved_dataset(run.checkpoint))) {
    fail_usage(
        "{} is dataset {}, and the run was trained on {}: name that one by --data, because an export "
        "contains its item attributes",
        dataset.folder().string(), dataset.manifest().id, saved_dataset(run.checkpoint));
  }
  const RunOptions configuration = exported(run.options);
  Task task = make_task(configuration, facts_of(dataset));
  Learner learner(configuration, std::move(task.model), std::move(task.objective));
  StagedFolder staged(options.output);
  const ExportFolder folder{staged.path()};
  write_weights(run.checkpoint, learner, options, staged.path());
  // As the run's configuration has the rows of tables: those of hashed ids are beyond what TOML may hold, and
  // the weights have them all.
  RunOptions written = exported(read_run_options(open_run_folder(options.run)));
  written.model.options().export_files(staged.path());
  write_file(folder.config(), to_toml(written));
  std::filesystem::create_directory(folder.dataset());
  write_schema(dataset, folder.dataset());
  Json manifest = describe(run.checkpoint, dataset, learner);
  write_file(folder.manifest(), manifest.dump(2) + "\n");
  staged.commit();
  manifest.erase("parameters");
  return manifest;
}

}  // namespace

Json export_model(const ExportOptions& options) {
  if (is_export(options.run)) fail_usage("{} is an export already: name a run", options.run.string());
  return read_checkpoint(open_run_folder(options.run).checkpoints(), options.checkpoint,
                         [&](const Path&) { return export_once(options); });
}

}  // namespace hstu
