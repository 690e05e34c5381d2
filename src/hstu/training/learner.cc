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
      tables(table_configs(*model), row_optimizer(run.sparse), run.seed,
             run.tables.place == TablePlace::device ? compute : host_context()),
      dense_optimizer(model->parameters().all(), run.dense.config, compute),
      bad_ids(run.on_bad_id, model->features()) {}

RowSelection select_rows(Learner& learner, const Batch& batch, RowAccess access) {
  const bool on_host = learner.tables.device().is_host();
  std::vector<Tensor> ids;
  for (const FeatureSpec& feature : learner.model->features()) {
    const std::string column = ids_column(feature.name);
    ids.push_back(on_host ? batch.host_tensor(column) : batch.tensor(column));
  }
  return learner.tables.select(ids, access);
}

std::vector<Variable> leaves_of(const TableSet& tables, const RowSelection& selection,
                                const Context& compute) {
  std::vector<Variable> leaves;
  for (Tensor& rows : tables.gather(selection))
    leaves.emplace_back(tables.device() == compute.device() ? std::move(rows) : rows.copy(compute));
  return leaves;
}

}  // namespace hstu
