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

// Parameters move before anything refers to their memory.
std::unique_ptr<Model> moved(std::unique_ptr<Model> model, const Context& context, Precision precision) {
  if (!context.device().is_host())
    model->move_to(context, precision == Precision::bf16 ? DType::bf16 : DType::f32);
  return model;
}

}  // namespace

Learner::Learner(const RunOptions& run, std::unique_ptr<Model> trained, Context where)
    : options(run),
      compute(std::move(where)),
      model(moved(std::move(trained), compute, run.precision)),
      tables(table_configs(*model), row_optimizer(run.sparse), run.seed),
      dense_optimizer(model->parameters().all(), run.dense.config, compute),
      bad_ids(run.on_bad_id, model->features()) {}

std::vector<std::span<const std::int64_t>> feature_ids(const Model& model, const Batch& batch) {
  std::vector<std::span<const std::int64_t>> ids;
  for (const FeatureSpec& feature : model.features())
    ids.push_back(batch.values<std::int64_t>(ids_column(feature.name)));
  return ids;
}

std::vector<Variable> leaves_of(std::vector<Tensor> rows, const Context& compute) {
  std::vector<Variable> leaves;
  leaves.reserve(rows.size());
  for (Tensor& tensor : rows)
    leaves.emplace_back(compute.device().is_host() ? std::move(tensor) : tensor.copy(compute));
  return leaves;
}

}  // namespace hstu
