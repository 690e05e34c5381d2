#include "hstu/training/run_parts.h"

#include <utility>

#include "hstu/embedding/table_section.h"
#include "hstu/optimizer/optimizer_section.h"

namespace hstu {

std::vector<Section> sections(Learner& learner, RunningMetrics& metrics) {
  std::vector<Section> all{parameters_section(learner.model.parameters().all()),
                           optimizer_section(learner.dense_optimizer)};
  for (Section& table : table_sections(learner.embeddings.tables())) all.push_back(std::move(table));
  all.push_back(bad_ids_section(learner.embeddings.bad_ids()));
  all.push_back(metrics.section());
  return all;
}

RunState load_run(const Checkpoint& checkpoint, Experiment& experiment) {
  RunningMetrics unused(experiment.options().metrics.window_samples);
  return load_run(checkpoint, experiment.dataset(), sections(experiment.learner(), unused));
}

RunFacts facts_of(const Experiment& experiment) {
  RunFacts facts;
  facts.config = to_toml(experiment.options());
  facts.dataset = experiment.dataset().manifest().id;
  facts.seed = experiment.options().seed;
  const TableSet& tables = experiment.learner().embeddings.tables();
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const TableConfig& config = tables[t].config();
    facts.tables.push_back({config.name, config.rows, config.dim});
  }
  facts.dense_parameters = experiment.learner().model.parameters().count();
  facts.train_samples = experiment.train_samples();
  facts.evaluation_samples = experiment.anchors().evaluation.size();
  return facts;
}

LearnerCounts counts_of(const Learner& learner) {
  LearnerCounts counts;
  const TableSet& tables = learner.embeddings.tables();
  for (std::size_t t = 0; t < tables.size(); ++t)
    counts.table_rows.emplace_back(tables[t].config().name, tables[t].rows_alive());
  for (const BadIds::Feature& feature : learner.embeddings.bad_ids().features())
    if (feature.count > 0) counts.bad_ids.emplace_back(feature.name, feature.count);
  return counts;
}

}  // namespace hstu
