#include "hstu/step/update_rule.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/finite.h"
#include "hstu/comm/first_text.h"
#include "hstu/optimizer/clipping.h"

namespace hstu {
namespace {

bool is_finite(const Tensor& tensor) {
  return first_not_finite(tensor.data<float>(), tensor.size()) == tensor.size();
}

// The first tensor that is not finite, for the message: parameters first, then table rows.
std::string first_bad_input(const Learner& learner) {
  const Stream& stream = learner.compute.stream;
  for (const Parameter* parameter : learner.model->parameters().all()) {
    if (!is_finite(parameter->value.to_host(stream))) return "parameter " + parameter->name;
  }
  for (std::size_t t = 0; t < learner.tables.size(); ++t) {
    const EmbeddingTable& table = learner.tables[t];
    const std::vector<EmbeddingTable::Place> places = table.places_by_id();
    constexpr std::size_t kAtATime = 1 << 14;
    std::vector<float> rows(std::min(kAtATime, places.size()) * static_cast<std::size_t>(table.width()));
    for (std::size_t first = 0; first < places.size(); first += kAtATime) {
      const auto some = std::span(places).subspan(first, std::min(kAtATime, places.size() - first));
      table.read(some, rows.data(), nullptr);
      for (std::size_t i = 0; i < some.size(); ++i)
        if (!all_finite(rows.data() + static_cast<std::int64_t>(i) * table.width(), table.width()))
          return fmt::format("row {} of embedding table {}", some[i].id, table.config().name);
    }
  }
  return "an activation";
}

[[noreturn]] void fail_not_finite(const StepWork& work, const std::string& what) {
  throw NotFiniteError(fmt::format("step {}: {}; the first bad tensor is {}", work.context().step + 1, what,
                                   first_bad_input(work.learner())));
}

// What this rank's rows and scores have that is not finite.
std::string bad_value(StepWork& work) {
  const auto bad_row = work.row_gradients().first_bad();
  if (!bad_row) return work.bad_output();
  return fmt::format("the gradient of id {} in embedding table {} is not finite; the first bad tensor is {}",
                     bad_row->id, work.learner().tables[bad_row->table].config().name,
                     first_bad_input(work.learner()));
}

// What is not finite among the figures, gradients and scores of all ranks. All ranks call it together.
[[noreturn]] void refuse_bad_values(StepWork& work, const GradientSquares& squares,
                                    const std::string& of_rank) {
  Communicator& comm = work.context().comm;
  const double loss = comm.sum(work.loss_of_rank());
  if (!std::isfinite(loss)) fail_not_finite(work, fmt::format("the loss is {}", loss));
  if (!std::isfinite(work.result().gradient_norm))
    fail_not_finite(work, fmt::format("the gradient of {} is not finite", squares.first_bad()));
  throw NotFiniteError(fmt::format("step {}: {}", work.context().step + 1, first_text(of_rank, comm)));
}

// Of the gradients of parameters, and of `also`, which have to be finite too.
GradientSquares sum_squares(StepWork& work, const std::vector<Tensor>& also) {
  const Learner& learner = work.learner();
  work.touches_bytes(learner.model->parameters().count() * std::int64_t{sizeof(float)});
  return GradientSquares(learner.model->parameters().all(), work.context().compute, also);
}

class HostDecides : public UpdateRule {
 public:
  void begin(StepWork& work) override {
    const TraceRange stage(work.context().compute, kOptimizerStage);
    squares_ = sum_squares(work, {});
  }

  void finish(StepWork& work) override {
    const Learner& learner = work.learner();
    if (learner.gpus != nullptr) learner.gpus->wait(learner.gpus->begun());
    work.settle_figures(work.loss_of_rank(), squares_->norm());
    const std::string bad = bad_value(work);
    const StepResult& result = work.result();
    if (work.any_rank_has(!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm) ||
                          !bad.empty()))
      refuse_bad_values(work, *squares_, bad);
    work.update(clip_scale(work.result().gradient_norm, learner.options.dense.max_gradient_norm), nullptr);
  }

  bool next_may_begin(const StepWork&) const override { return false; }

 private:
  std::optional<GradientSquares> squares_;
};

// On one GPU, for a step of one part.
class DeviceDecides : public UpdateRule {
 public:
  void begin(StepWork& work) override {
    Learner& learner = work.learner();
    updates_before_ = learner.dense_optimizer.steps();
    {
      std::vector<Tensor> also = work.row_gradients().all();
      // Of outputs in bfloat16 the loss says whether one is not finite.
      if (work.outputs().front().dtype() == DType::f32) also.push_back(work.outputs().front());
      const TraceRange stage(work.context().compute, kOptimizerStage);
      squares_ = sum_squares(work, also);
      outcome_ = learner.update_check->judge(*squares_, work.losses().front(),
                                             learner.options.dense.max_gradient_norm);
    }
    work.update(1, learner.update_check->factor());
    work.leave_section();
  }

  void finish(StepWork& work) override {
    work.settle_figures(outcome_->loss(), outcome_->gradient_norm());
    if (!work.any_rank_has(!outcome_->is_updated())) return;
    Learner& learner = work.learner();
    learner.dense_optimizer.set_steps(updates_before_);
    learner.update_check->reset();
    refuse_bad_values(work, *squares_, bad_value(work));
  }

  bool next_may_begin(const StepWork& work) const override {
    constexpr std::int64_t kLittle = std::int64_t{64} << 20;  // of gradients of rows
    return work.row_bytes() <= kLittle;
  }

 private:
  std::int64_t updates_before_ = 0;
  std::optional<GradientSquares> squares_;
  std::optional<UpdateOutcome> outcome_;
};

}  // namespace

std::unique_ptr<UpdateRule> choose_update_rule(const StepWork& work) {
  if (work.learner().update_check != nullptr && work.losses().size() == 1)
    return std::make_unique<DeviceDecides>();
  return std::make_unique<HostDecides>();
}

}  // namespace hstu
