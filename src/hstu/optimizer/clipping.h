// The global gradient norm: how long the gradient of all dense parameters together is, and by what to scale
// it. Embedding gradients are neither counted nor clipped.
#pragma once

#include <string>

#include "hstu/tensor/parameter.h"

namespace hstu {

// sqrt of the sum of squares of all gradients (f32 or f64), summed in double in an order that does not depend
// on the number of threads. A NaN or infinite gradient makes the norm NaN or infinite: stop the run on it,
// before the update.
double gradient_norm(const NamedTensors& parameters);

// min(1, max_norm / (norm + 1e-6)); 1 when max_norm is 0 (no clipping); NaN for a NaN norm.
// The factor for DenseOptimizer::step.
double clip_scale(double norm, double max_norm);

// The name of the first parameter, in the model's order, whose gradient holds a NaN or an infinity; "" if
// none.
std::string first_bad_gradient(const NamedTensors& parameters);

}  // namespace hstu
