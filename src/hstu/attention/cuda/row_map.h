// The rows of q, k, v and dO as the tensor copy engine addresses them.
#pragma once

#include <cstdint>

#include <cuda.h>

#include "hstu/attention/cuda/limits.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

// A box that crosses the end of a sample gets zeros beyond it, whatever the next sample contains. The map has
// the rows twice: coordinate x ends at kLongestSample, where the engine fills in zeros; coordinate y moves
// that end to the end of any sample. Row r of the sample that ends before row e of the tensor has x =
// kLongestSample - (e - begin) + r and y = e, and the base of the map is kLongestSample rows before the
// tensor. Coordinates: (0, x, column / 64, head, y).
CUtensorMap row_map(const AttentionProblem& problem, const AttentionInput& rows, int box_rows,
                    int box_columns);

}  // namespace hstu::cuda
