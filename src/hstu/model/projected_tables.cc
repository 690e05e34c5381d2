#include "hstu/model/projected_tables.h"

#include <utility>

#include "hstu/base/error.h"
#include "hstu/model/stages.h"
#include "hstu/ops/linear.h"

namespace hstu {

ProjectedTables::ProjectedTables(std::unique_ptr<Model> model, std::vector<std::int64_t> widths)
    : model_(std::move(model)), widths_(std::move(widths)) {
  const std::vector<FeatureSpec> features = model_->features();
  const std::int64_t dim = model_->embedding_dim();
  require(widths_.size() == features.size(), "expected the widths of {} tables, found {}", features.size(),
          widths_.size());
  for (std::size_t f = 0; f < features.size(); ++f) {
    const std::int64_t width = widths_[f];
    projections_.push_back(
        width == dim ? nullptr
                     : &model_->parameters().add("tables." + features[f].name + ".projection", {width, dim},
                                                 Initializer::xavier_uniform(width, dim)));
  }
}

Variable ProjectedTables::projected(Tape& tape, std::size_t feature, const Variable& rows) const {
  const Parameter* const projection = projections_[feature];
  return projection == nullptr ? rows : ops::linear(tape, rows, Variable(*projection), Variable());
}

Variable ProjectedTables::forward(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                                  const Draws& draws) const {
  require(rows.size() == projections_.size(), "expected rows of {} features, found {}", projections_.size(),
          rows.size());
  std::vector<Variable> read;
  {
    const StageRange stage(tape, kPreprocessorStage);
    for (std::size_t f = 0; f < rows.size(); ++f) read.push_back(projected(tape, f, rows[f]));
  }
  return model_->forward(tape, batch, read, draws);
}

}  // namespace hstu
