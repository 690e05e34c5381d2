#include "hstu/training/learner.h"

#include <utility>

namespace hstu {
namespace {

RowOptimizer row_optimizer(const SparseOptimizerSection& section) {
  return {section.kind, section.epsilon, section.beta1, section.beta2};
}

std::vector<TableConfig> table_configs(const Model& model) {
  std::vector<TableConfig> configs;
  for (const FeatureSpec& feature : model.features())
    configs.push_back({feature.name, feature.rows, model.embedding_dim()});
  return configs;
}

}  // namespace

Learner::Learner(const RunOptions& run, std::unique_ptr<Model> trained)
    : options(run),
      model(std::move(trained)),
      tables(table_configs(*model), row_optimizer(run.sparse), run.seed),
      dense_optimizer(model->parameters().all(), run.dense.config),
      bad_ids(run.on_bad_id, model->features()) {}

std::vector<std::span<const std::int64_t>> feature_ids(const Model& model, const Batch& batch) {
  std::vector<std::span<const std::int64_t>> ids;
  for (const FeatureSpec& feature : model.features())
    ids.push_back(batch.values<std::int64_t>(ids_column(feature.name)));
  return ids;
}

std::vector<Variable> leaves_of(std::vector<Tensor> rows) {
  std::vector<Variable> leaves;
  for (Tensor& tensor : rows) leaves.emplace_back(std::move(tensor));
  return leaves;
}

}  // namespace hstu
