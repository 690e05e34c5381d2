// What a step has computed so far: the state between the stages of its recipe (step.cc).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/batching/bad_ids.h"
#include "hstu/embedding/row_gradients.h"
#include "hstu/embedding/row_visits.h"
#include "hstu/run/step_result.h"
#include "hstu/step/dense_sums.h"
#include "hstu/step/lookup_ahead.h"
#include "hstu/step/part_passes.h"
#include "hstu/step/step_context.h"
#include "hstu/step/step_sections.h"

namespace hstu {

class StepWork : public PartPasses {
 public:
  // Takes the first part, and clears the dense gradients. `parts`: until begin_step() returns.
  StepWork(Learner& learner, PartSource& parts, const StepContext& context);

  void forward() override;
  void loss() override;
  void backward() override;
  void launch(const std::function<void()>& passes) override;

  // Dense gradients, in Parameter::gradient, and those of rows become sums over parts and ranks; every term
  // is already divided by the supervised examples of the global batch.
  void sum_over_ranks();

  // The update, at the rates of the step. `clip` scales the dense gradients. `factor`, if not null, takes its
  // place: (1) in a GPU's memory; NaN: neither parameters nor rows are updated.
  void update(double clip, const float* factor);

  // Predictions of the global batch, given to StepContext::on_predictions too. Once.
  void settle_predictions();
  // The loss of this rank, which its device has computed.
  double loss_of_rank() const;
  // Takes the figures. They become those of all ranks, unless StepContext::unshared waits for them.
  void settle_figures(double loss_of_rank, double gradient_norm);
  // The same answer on all ranks: whether one has a value that is not finite. Bad ids are exchanged too.
  bool any_rank_has(bool not_finite);
  // What the step came to, once. Ends its sections.
  StepResult figures();

  Learner& learner() const { return learner_; }
  const StepContext& context() const { return context_; }
  const StepResult& result() const { return result_; }
  RowGradients& row_gradients() { return row_gradients_; }
  std::int64_t row_bytes() const { return row_bytes_; }  // of the rows, and of their gradients
  // Which output of this rank is not finite; "" if all are.
  const std::string& bad_output() const { return bad_output_; }
  // Ends the section of the stage that was last.
  void leave_section() { sections_.leave(); }
  // Reports to the trace what the current stage reads and writes.
  void touches_bytes(std::int64_t bytes) const;

 private:
  void enter(std::string_view section);
  void beat(std::string_view stage) const;
  BatchRows look_up(const Batch& batch) override;
  void take_row_gradients(std::vector<Tensor> gradients) override;
  void note_visits(const Batch& batch);
  void add_catalogue_gradients();
  // Whether the sums of dense gradients begin in this part's backward pass.
  bool begins_sums() const { return is_last() && context_.comm.size() > 1 && learner_.options.ranks.overlap; }

  Learner& learner_;
  StepContext context_;
  StepSections sections_;
  StepResult result_;

  std::optional<DenseSums> sums_;     // until sum_over_ranks() returns
  std::optional<LookupAhead> ahead_;  // of the current part

  RowGradients row_gradients_;
  RowVisits visits_;
  std::int64_t time_ = std::numeric_limits<std::int64_t>::min();  // of the latest sample
  std::int64_t row_bytes_ = 0;
  std::vector<BadIdCount> bad_ids_;
  std::shared_ptr<Tally> predictions_;
  std::int64_t exchanges_ = 0;  // between GPUs, begun before the last outputs
  std::string bad_output_;
};

}  // namespace hstu
