// The global norm of the gradients of all dense parameters, and the factor that clips it. Embedding gradients
// are neither counted nor clipped.
#pragma once

#include <string>
#include <vector>

#include "hstu/optimizer/clip_scale.h"
#include "hstu/tensor/context.h"
#include "hstu/tensor/parameter.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// The sums of squares of each parameter's gradient (f32 or f64), in double, in an order that does not depend
// on the number of threads. On a GPU the constructor puts them on the stream, and only the others wait for
// it.
class GradientSquares {
 public:
  // `also` (f32, on a GPU) are squared in the same launch: others that have to be finite, outside of norm().
  explicit GradientSquares(NamedTensors parameters, const Context& context = host_context(),
                           const std::vector<Tensor>& also = {});

  // sqrt of the sum over all parameters, each element once: divided parameters are summed over the context's
  // tensor group, whose ranks make their first call of norm() or first_bad() together. A NaN or infinite
  // gradient makes the norm NaN or infinite: end the run then, before the update.
  double norm() const;
  // The name of the first parameter, in the model's order, whose gradient holds a NaN or an infinity, on any
  // rank that has a part of it; "" if none.
  std::string first_bad() const;
  // (parameters and then `also`) f64, on the context's device.
  const Tensor& sums() const { return sums_; }
  std::int64_t parameters() const { return static_cast<std::int64_t>(parameters_.size()); }

 private:
  // (parameters) of whole parameters.
  const std::vector<double>& totals() const;

  NamedTensors parameters_;
  Stream stream_;
  const Groups* groups_;
  Tensor sums_;
  mutable std::vector<double> totals_;  // from the first call of totals() on
};

}  // namespace hstu
