// The global norm of the gradients of all dense parameters, and the factor that clips it. Embedding gradients
// are neither counted nor clipped.
#pragma once

#include <string>

#include "hstu/tensor/parameter.h"

namespace hstu {

// sqrt of the sum of squares of all gradients (f32 or f64), summed in double in an order that does not depend
// on the number of threads. A NaN or infinite gradient makes the norm NaN or infinite: end the run then,
// before the update.
double gradient_norm(const NamedTensors& parameters, const Context& context = host_context());

// The factor for DenseOptimizer::step: min(1, max_norm / (norm + 1e-6)); 1 if max_norm is 0 (no clipping);
// NaN for a NaN norm.
double clip_scale(double norm, double max_norm);

// The name of the first parameter, in the model's order, whose gradient holds a NaN or an infinity; "" if
// none.
std::string first_bad_gradient(const NamedTensors& parameters, const Context& context = host_context());

}  // namespace hstu
