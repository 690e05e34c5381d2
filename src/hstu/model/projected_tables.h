// ProjectedTables: a model some of whose tables have rows of another width than it reads. A learned matrix
// for each of them leads to the model's width.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hstu/model/model.h"

namespace hstu {

class ProjectedTables final : public Model {
 public:
  // `widths`: of the rows of each of the model's features, W_f from 1; where it is not embedding_dim() = E,
  // the model gets a parameter "tables.NAME.projection" (W_f, E), uniform with variance 2 / (W_f + E), behind
  // its own.
  ProjectedTables(std::unique_ptr<Model> model, std::vector<std::int64_t> widths);

  const ParameterSet& parameters() const override { return model_->parameters(); }
  ParameterSet& parameters() override { return model_->parameters(); }
  void move_to(const Context& context, DType compute) override { model_->move_to(context, compute); }
  std::vector<FeatureSpec> features() const override { return model_->features(); }
  std::int64_t embedding_dim() const override { return model_->embedding_dim(); }
  std::int64_t row_width(std::size_t feature) const override { return widths_[feature]; }
  Variable projected(Tape& tape, std::size_t feature, const Variable& rows) const override;
  bool shares_histories() const override { return model_->shares_histories(); }
  const BatchLayout& layout() const override { return model_->layout(); }
  // From rows[f] (n_f, W_f): of the model on rows[f] times the projection.
  Variable forward(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                   const Draws& draws) const override;
  std::string why_whole_heads() const override { return model_->why_whole_heads(); }
  HstuStackConfig layers() const override { return model_->layers(); }
  StackFlops flops(const Batch& batch) const override { return model_->flops(batch); }

 private:
  std::unique_ptr<Model> model_;
  std::vector<std::int64_t> widths_;
  std::vector<const Parameter*> projections_;  // by feature; null: none
};

}  // namespace hstu
