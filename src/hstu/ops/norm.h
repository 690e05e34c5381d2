// Normalisations over the last dimension.
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// y (M, N) = layer_norm(x (M, N)) with weight (N) and bias (N).
Variable layer_norm(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                    double epsilon);

// y (M, N) = x * sigmoid(layer_norm(x)); x itself is not normalised.
Variable swish_layer_norm(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                          double epsilon);

// y (M, N) = x (M, N), each row divided by max(its Euclidean norm, epsilon).
Variable l2_normalise(Tape& tape, const Variable& x, double epsilon);

}  // namespace hstu::ops
