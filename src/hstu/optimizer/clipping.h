// The global norm of the gradients of all dense parameters, and the factor that clips it. Embedding gradients
// are neither counted nor clipped.
#pragma once

#include <string>

#include "hstu/tensor/context.h"
#include "hstu/tensor/parameter.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// The sums of squares of each parameter's gradient (f32 or f64), in double, in an order that does not depend
// on the number of threads. On a GPU the constructor puts them on the stream, and only the others wait for
// it.
class GradientSquares {
 public:
  explicit GradientSquares(NamedTensors parameters, const Context& context = host_context());

  // sqrt of the sum over all parameters. A NaN or infinite gradient makes the norm NaN or infinite: end the
  // run then, before the update.
  double norm() const;
  // The name of the first parameter, in the model's order, whose gradient holds a NaN or an infinity; "" if
  // none.
  std::string first_bad() const;

 private:
  NamedTensors parameters_;
  Stream stream_;
  Tensor sums_;  // (parameters) f64
};

// The factor for DenseOptimizer::step: min(1, max_norm / (norm + 1e-6)); 1 if max_norm is 0 (no clipping);
// NaN for a NaN norm.
double clip_scale(double norm, double max_norm);

}  // namespace hstu
