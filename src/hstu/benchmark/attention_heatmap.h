// A picture of a sweep: one grid a direction, a cell for each batch size and length, coloured by TFLOP/s.
#pragma once

#include <string>
#include <vector>

#include "hstu/benchmark/attention_sweep.h"

namespace hstu {

// One SVG document that needs nothing else and follows the viewer's light or dark scheme. Rows and columns
// are the samples and lengths that occur, in their order; a cell that was left out shows no number and says
// why when the pointer rests on it. A cell's TFLOP/s are those of its burst.
std::string attention_heatmap_svg(const std::string& title, const std::string& subtitle,
                                  const std::vector<AttentionSweepCell>& cells);

}  // namespace hstu
