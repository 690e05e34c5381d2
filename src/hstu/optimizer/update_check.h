// UpdateCheck: a GPU decides by itself whether the update of a step may take place, and by which factor, so
// that the host can queue the update, and the next step, before the gradients exist.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "hstu/device/stream.h"
#include "hstu/optimizer/clipping.h"
#include "hstu/optimizer/dense_update.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// What a step's gradients and loss allow. Asking waits for them.
class UpdateOutcome {
 public:
  double loss() const { return facts().loss; }
  double gradient_norm() const { return facts().gradient_norm; }
  // Whether the update took place: everything was finite, in the steps before too.
  bool is_updated() const { return facts().is_updated; }

 private:
  friend class UpdateCheck;
  UpdateOutcome(const UpdateFacts* facts, Event known) : facts_(facts), known_(std::move(known)) {}
  const UpdateFacts& facts() const {
    known_.synchronize();
    return *facts_;
  }

  const UpdateFacts* facts_;
  Event known_;
};

class UpdateCheck {
 public:
  // Of a GPU.
  explicit UpdateCheck(const Context& context);

  // Puts on the context's stream: factor() becomes clip_scale() of the gradients' norm; NaN if a number that
  // was squared or the loss, (1) f32, is not finite, and from then on. An outcome is valid until the second
  // call after its own.
  UpdateOutcome judge(const GradientSquares& squares, const Tensor& loss, double max_norm);

  // (1) in the GPU's memory, for DenseOptimizer::step and RowGradients::apply.
  const float* factor() const { return factor_.data<float>(); }
  // After an outcome without an update: updates may take place again.
  void reset();

 private:
  static constexpr std::size_t kOutcomes = 2;

  Context context_;
  Tensor factor_;                       // (1) f32
  std::shared_ptr<UpdateFacts> facts_;  // kOutcomes of them in page-locked memory, by turns
  std::size_t turn_ = 0;
};

}  // namespace hstu
