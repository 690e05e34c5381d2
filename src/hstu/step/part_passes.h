// The passes over the parts of a global batch, and what of them is in memory until when.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "hstu/experiment/learner.h"
#include "hstu/model/draws.h"
#include "hstu/step/part_source.h"
#include "hstu/tensor/tape.h"

namespace hstu {

// A derived class has the rows and takes their gradients: training's (StepWork), and that of a plan, for
// which no kernel runs (plan/dry_step.cc). pass_parts() in step.h calls the functions in their order.
class PartPasses {
 public:
  // Takes the first part. `gradient_of_loss`: (1), a 1. `catalogues`: of the objective. The model, the
  // objective and `parts` must outlive it.
  PartPasses(const Model& model, const Objective& objective, Context compute, const Draws& draws,
             Tensor gradient_of_loss, PartSource& parts, std::vector<CatalogueRows> catalogues = {});
  virtual ~PartPasses() = default;
  PartPasses(const PartPasses&) = delete;
  PartPasses& operator=(const PartPasses&) = delete;

  // The current part; null after the last.
  const Batch* part() const { return part_.batch; }
  void advance();

  // Of the current part, in this order; and of the following part, whose rows are looked up beside it.
  void look_up_rows();
  virtual void forward();
  virtual void loss();
  virtual void backward();
  // Calls passes(): forward(), loss() and backward() of a part.
  virtual void launch(const std::function<void()>& passes) { passes(); }

  const std::vector<Tensor>& losses() const { return losses_; }    // (1) f32, of each part
  const std::vector<Tensor>& outputs() const { return outputs_; }  // of the model, of each part

 protected:
  virtual BatchRows look_up(const Batch& batch) = 0;
  // (n, D) f32 each, in the order of Model::features(); undefined: none.
  virtual void take_row_gradients(std::vector<Tensor> gradients) = 0;

  BatchRows& rows() { return *part_.rows; }  // of the current part
  bool is_last() const { return following_.batch == nullptr; }
  PartSource& parts() { return parts_; }
  Tape& tape() { return pass_->tape; }  // from forward() to backward()

 private:
  struct Part {
    const Batch* batch = nullptr;
    std::optional<BatchRows> rows;  // looked up
  };
  // Of the current part.
  struct Record {
    explicit Record(const Context& compute) : tape(compute) {}
    Tape tape;
    Variable outputs, loss;
  };
  Part looked_up(const Batch* batch);

  const Model& model_;
  const Objective& objective_;
  Context compute_;
  Draws draws_;
  Tensor gradient_of_loss_;
  PartSource& parts_;
  Part part_, following_;
  std::vector<CatalogueRows> catalogues_;
  std::optional<Record> pass_;
  std::vector<Tensor> losses_, outputs_;
};

}  // namespace hstu
