#include "hstu/training/learner.h"

namespace hstu {
namespace {

RowOptimizer row_optimizer(const SparseOptimizerSection& section) {
  return {parse_row_optimizer(section.kind), section.epsilon, section.beta1, section.beta2};
}

}  // namespace

Learner::Learner(const RunOptions& run, const ModelConfig& model_config, const FeatureTables& tables)
    : options(run),
      model(model_config, run.seed),
      embeddings(tables, model_config.embedding_dim, row_optimizer(run.sparse), run.seed,
                 parse_on_bad_id(run.on_bad_id)),
      dense_optimizer(model.parameters().all(), run.dense.config) {}

}  // namespace hstu
