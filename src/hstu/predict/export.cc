#include "hstu/predict/export.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/version.h"
#include "hstu/embedding/table_section.h"
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
  return options;
}

// The rows of the checkpoint without their optimizer's state.
void copy_rows(const Checkpoint& checkpoint, EmbeddingTable& table) {
  const SavedTable saved(checkpoint.section("tables/" + table.config().name));
  take_first_size(table, saved);
  restore_rows(table, saved, false);
}

void write_weights(const Checkpoint& checkpoint, Learner& learner, const Path& folder) {
  const Section dense = parameters_section(learner.model->parameters().all());
  dense.load(checkpoint.section(dense.name));
  std::vector<Section> sections = table_sections(learner.tables);
  for (std::size_t t = 0; t < learner.tables.size(); ++t) copy_rows(checkpoint, learner.tables[t]);
  sections.push_back(dense);
  const Path written = save_checkpoint(folder, checkpoint.step(), sections,
                                       {{"dataset", saved_dataset(checkpoint)}, {"reason", kExportReason}});
  std::filesystem::rename(written, ExportFolder{folder}.weights());
}

Json describe(const Checkpoint& checkpoint, const Dataset& dataset, const Learner& learner) {
  const RankingObjective* const ranking = learner.objective->ranking();
  Json json{{"format", kExportFormat},
            {"version", kExportVersion},
            {"program", version()},
            {"step", checkpoint.step()},
            {"dataset", {{"name", dataset.manifest().name}, {"id", dataset.manifest().id}}},
            {"tasks", ranking == nullptr ? std::vector<std::string>() : ranking->tasks()}};
  json["tables"] = Json::array();
  for (std::size_t t = 0; t < learner.tables.size(); ++t) {
    const EmbeddingTable& table = learner.tables[t];
    json["tables"].push_back({{"name", table.config().name},
                              {"rows", table.config().rows},
                              {"width", table.config().dim},
                              {"trained", table.rows_alive()}});
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
  write_weights(run.checkpoint, learner, staged.path());
  // As the run's configuration has the rows of tables: those of hashed ids are beyond what TOML may hold, and
  // the weights have them all.
  write_file(folder.config(), to_toml(exported(read_run_options(open_run_folder(options.run)))));
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
