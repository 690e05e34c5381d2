// DenseOptimizer: updates the dense parameters of a model by their gradients, in one pass per parameter. The
// state is fp32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/choice.h"
#include "hstu/checkpoint/safetensors.h"
#include "hstu/optimizer/dense_update.h"
#include "hstu/optimizer/parameter_blocks.h"
#include "hstu/tensor/parameter.h"

namespace hstu {

enum class DenseOptimizerKind { adam, adamw, sgd };
inline constexpr Choice<DenseOptimizerKind> kDenseOptimizers[] = {{"adam", DenseOptimizerKind::adam},
                                                                  {"adamw", DenseOptimizerKind::adamw},
                                                                  {"sgd", DenseOptimizerKind::sgd}};

struct DenseOptimizerConfig {
  DenseOptimizerKind kind = DenseOptimizerKind::adam;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  // Adam, SGD: added to the gradient (L2); AdamW: w -= lr weight_decay w, apart
  double momentum = 0.0;      // SGD: m = momentum m + g; w -= lr m
  // The MLPerf DLRMv4 reference takes a dummy step before training; its first real update has t = 2.
  bool adam_starts_at_t2 = false;
};

// Adam (Kingma and Ba 2015; AdamW: Loshchilov and Hutter 2019), update number t, gradient g:
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// Results do not depend on the number of threads.
class DenseOptimizer {
 public:
  // Parameters (f32, on the context's device) belong to the model and must outlive this object, which updates
  // a shard of them and has the state of that alone. Throws UsageError for invalid values of the
  // configuration.
  DenseOptimizer(NamedTensors parameters, DenseOptimizerConfig config, Context context = host_context(),
                 Shard shard = {});

  // One update of every parameter, or of the shard, by gradient_scale * its gradient (clip_scale in
  // clipping.h). Leaves the gradients unchanged.
  void step(double learning_rate, double gradient_scale = 1.0) {
    step(learning_rate, gradient_scale, nullptr);
  }
  // The same on a GPU, where the scale is (UpdateCheck::factor()). Without an update, set_steps() takes the
  // count back.
  void step(double learning_rate, const float* gradient_scale) { step(learning_rate, 1.0, gradient_scale); }

  // Bytes that step() reads and writes: values, gradients and state.
  std::int64_t step_bytes() const;

  // The state: named fp32 tensors, to be read or filled in place, and the number of updates. Without shards
  // each has the shape of its parameter.
  struct State {
    std::string name;  // "m.<parameter>" or "v.<parameter>"
    Tensor tensor;     // of elements [begin, end) of the parameter
    std::size_t parameter = 0;
    std::int64_t begin = 0, end = 0;
  };
  const std::vector<State>& state() const { return state_; }
  std::vector<State>& state() { return state_; }
  const Context& context() const { return context_; }  // of the state
  const NamedTensors& parameters() const { return parameters_; }
  const Shard& shard() const { return shard_; }
  // The names and shapes of what checkpoints have: the state of all shards and of whole parameters, in the
  // order of parameters.
  std::vector<TensorSpec> whole_state() const;
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  // (parameters) the updates that were done when the state of each began: its t counts those after them.
  // Zeros but after a warm start, whose new parameters have none of the states that the others bring.
  const std::vector<std::int64_t>& begun() const { return begun_; }
  void set_begun(std::vector<std::int64_t> begun);

 private:
  void step(double learning_rate, double gradient_scale, const float* factor);
  // Of the parameters whose state began at `begun`.
  UpdateNumbers numbers_of(double learning_rate, double gradient_scale, std::int64_t begun) const;

  NamedTensors parameters_;
  DenseOptimizerConfig config_;
  Context context_;
  Shard shard_;
  std::vector<ParameterBlock> pieces_;  // of the shard
  std::vector<ParameterBlock> blocks_;  // of each piece
  std::vector<State> state_;            // Adam: m and v of each piece; SGD with momentum: m of each
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> begun_;
};

}  // namespace hstu
