// The operations of an RQ-VAE: residual quantisation with gradients that pass through it. On the host.
#pragma once

#include <cstdint>

#include "hstu/tensor/tape.h"

namespace hstu {

// y (B, d) = `quantised`, with the gradient of y as that of z (B, d): the straight-through estimator.
Variable straight_through(Tape& tape, const Variable& z, const Tensor& quantised);

// factor * the sum over rows b and levels l of |sg(r) - e|^2 + commitment |r - sg(e)|^2, (1), where e is the
// row codes[b, l] of `codebooks` (rows, d), r is z (B, d) minus the codes of the levels before as constants,
// and sg stops gradients. codes (B, L) i32.
Variable quantisation_loss(Tape& tape, const Variable& z, const Variable& codebooks, const Tensor& codes,
                           double commitment, double factor);

// factor * the sum of (y - x)^2, (1). y, x (B, D).
Variable squared_error(Tape& tape, const Variable& y, const Tensor& x, double factor);

}  // namespace hstu
