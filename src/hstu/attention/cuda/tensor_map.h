// How the tensor copy engine sees the rows of q, k, v and dO.
#pragma once

#include <cstdint>

#include <cuda.h>

#include "hstu/attention/cuda/limits.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

// A box that crosses the end of a sample is filled with zeros there, whatever the next sample holds. The map
// has the rows twice: coordinate x counts to kLongestSample, where rows end for the engine; coordinate y
// moves that end to the end of any sample. Row r of the sample that ends before row e of the tensor is x =
// kLongestSample - (e - begin) + r, y = e, and the map's base lies kLongestSample rows before the tensor.
// Coordinates: (0, x, column / 64, head, y).
CUtensorMap row_map(const AttentionProblem& problem, const AttentionInput& rows, int box_rows,
                    int box_columns);

}  // namespace hstu::cuda
