#include "hstu/step/part_passes.h"

#include <utility>

namespace hstu {

PartPasses::PartPasses(const Model& model, const Objective& objective, Context compute, const Draws& draws,
                       Tensor gradient_of_loss, PartSource& parts, std::vector<CatalogueRows> catalogues)
    : model_(model),
      objective_(objective),
      compute_(std::move(compute)),
      draws_(draws),
      gradient_of_loss_(std::move(gradient_of_loss)),
      parts_(parts),
      catalogues_(std::move(catalogues)) {
  part_.batch = parts.next();
}

void PartPasses::advance() {
  part_ = std::exchange(following_, {});
}

PartPasses::Part PartPasses::looked_up(const Batch* batch) {
  if (batch == nullptr) return {};
  return {batch, look_up(*batch)};
}

void PartPasses::look_up_rows() {
  if (!part_.rows) part_ = looked_up(part_.batch);
  following_ = looked_up(parts_.next());
}

void PartPasses::forward() {
  pass_.emplace(compute_);
  pass_->outputs = model_.forward(pass_->tape, *part_.batch, part_.rows->leaves, draws_);
}

void PartPasses::loss() {
  std::vector<Variable> rows = part_.rows->leaves;
  // A loss over a catalogue compares vectors with rows of the model's width.
  if (!catalogues_.empty())
    for (std::size_t f = 0; f < rows.size(); ++f) rows[f] = model_.projected(pass_->tape, f, rows[f]);
  pass_->loss = objective_.loss({pass_->tape, *part_.batch, rows, catalogues_}, pass_->outputs);
  outputs_.push_back(pass_->outputs.value());
}

void PartPasses::backward() {
  pass_->tape.backward(pass_->loss, Tensor(gradient_of_loss_));
  std::vector<Tensor> gradients;
  gradients.reserve(part_.rows->leaves.size());
  for (const Variable& leaf : part_.rows->leaves) gradients.push_back(leaf.gradient());
  take_row_gradients(std::move(gradients));
  losses_.push_back(pass_->loss.value());
  pass_.reset();
}

}  // namespace hstu
